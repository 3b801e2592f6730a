#!/usr/bin/env python3
"""Check `kolibri-sft convert` against records in the shapes of public data sets.

    check_schemas.py KOLIBRI_SFT CASES.jsonl [--kind KIND]... [--id PART]... [--jobs N] [--toml] [-v]
                     [--render --tokenizer DIR]

Each case is one check; a case with `alone` is two, the second without its mapping (named ID/alone).
Exit status 0 where all hold, 1 where one fails. `--toml` hands the mapping over as a TOML file (--map-file).
`--render` also renders what was converted and looks for the texts in the document and for the loss on the assistant's.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from decimal import Decimal

LABELS = ("dataset", "domain", "difficulty")
TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "dict": "object", "list": "array"}


# ---------------------------------------------------------------------------------------------- one form of a record


def loads(text):
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def plain(value):
    """Values that compare as JSON: 16.2 = 16.20, 1 = 1.0, true is no number, keys in any order."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float | Decimal):
        return Decimal(str(value)).normalize()
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()}


def same(a, b):
    a, b = plain(a), plain(b)
    if isinstance(a, bool) != isinstance(b, bool) or type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a == b


def text_of(content):
    if content is None:
        return ""
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        return "".join(part["text"] for part in content)
    return content


def same_content(role, want, got):
    want, got = text_of(want), text_of(got)
    if want == got:
        return True
    if role == "tool" and isinstance(want, str) and isinstance(got, str):
        try:
            return same(loads(want), loads(got))
        except ValueError:
            return False
    return False


def calls_of(message):
    calls = []
    for call in message.get("tool_calls") or []:
        function = call.get("function", call)
        calls.append((function.get("name"), function.get("arguments")))
    return calls


def messages_of(record):
    """Messages that say something: an empty system message is none."""
    return [
        m for m in record.get("messages") or [] if not (m.get("role") == "system" and not text_of(m.get("content")))
    ]


def schema(value):
    """A JSON Schema with Python's type names mapped and nulls and empty `required` left out."""
    if isinstance(value, list):
        return [schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for key, item in value.items():
        if item is None or (key == "required" and not item):
            continue
        if key == "type" and isinstance(item, str):
            out[key] = TYPES.get(item, item)
        elif key == "required" and isinstance(item, list):
            out[key] = sorted(item)
        else:
            out[key] = schema(item)
    return out


def schema_differs(want, got, where):
    """What `want` says must hold in `got`; `items` that `got` adds to an array is no difference."""
    if isinstance(want, dict) and isinstance(got, dict):
        extra = set(got) - set(want) - ({"items"} if want.get("type") == "array" else set())
        if extra or set(want) - set(got):
            return f"{where}: keys {sorted(want)} expected, {sorted(got)} found"
        for key in want:
            if problem := schema_differs(want[key], got[key], f"{where}.{key}"):
                return problem
        return None
    return None if same(want, got) else f"{where}: {want!r} expected, {got!r} found"


def function_of(tool):
    return tool.get("function", tool) if isinstance(tool, dict) else {}


# ---------------------------------------------------------------------------------------------- comparing


def differs(want, got):
    """The first difference between an expected and a converted record, or None."""
    a, b = messages_of(want), messages_of(got)
    if [m["role"] for m in a] != [m.get("role") for m in b]:
        return f"roles {[m['role'] for m in a]} expected, {[m.get('role') for m in b]} found"
    for index, (x, y) in enumerate(zip(a, b, strict=True)):
        where = f"message {index} ({x['role']})"
        if (x.get("reasoning") or "").strip() != (y.get("reasoning") or "").strip():
            return f"{where}: reasoning {x.get('reasoning')!r} expected, {y.get('reasoning')!r} found"
        if not same_content(x["role"], x.get("content"), y.get("content")):
            return f"{where}: content {x.get('content')!r} expected, {y.get('content')!r} found"
        ours, theirs = calls_of(x), calls_of(y)
        if [name for name, _ in ours] != [name for name, _ in theirs]:
            return f"{where}: calls of {[n for n, _ in ours]} expected, of {[n for n, _ in theirs]} found"
        for (name, arguments), (_, found) in zip(ours, theirs, strict=True):
            readable = isinstance(arguments, dict)
            if (not isinstance(found, dict) or not same(arguments, found)) if readable else found != arguments:
                return f"{where}: {name} with {arguments!r} expected, {found!r} found"
        if x["role"] == "assistant" and (x.get("weight", 1) == 0) != (y.get("weight") == 0):
            return f"{where}: weight {x.get('weight', 1)} expected, {y.get('weight', 1)} found"
        for key in ("tool_call_id", "is_error"):
            if key in x and x[key] != y.get(key):
                return f"{where}: {key} {x[key]!r} expected, {y.get(key)!r} found"
    return tools_differ(want.get("tools") or [], got.get("tools") or []) or labels_differ(want, got)


def tools_differ(want, got):
    want, got = [function_of(t) for t in want], [function_of(t) for t in got]
    if [t.get("name") for t in want] != [t.get("name") for t in got]:
        return f"tools {[t.get('name') for t in want]} expected, {[t.get('name') for t in got]} found"
    for x, y in zip(want, got, strict=True):
        if (x.get("description") or "") != (y.get("description") or ""):
            return f"tool {x['name']}: another description"
        problem = schema_differs(
            schema(x.get("parameters") or {}), schema(y.get("parameters") or {}), f"tool {x['name']}: parameters"
        )
        if problem:
            return problem
    return None


def labels_differ(want, got):
    if "id" in want and want["id"] != got.get("id"):
        return f"id {want['id']!r} expected, {got.get('id')!r} found"
    for key in LABELS:
        if want.get(key) != got.get(key):
            return f"{key} {want.get(key)!r} expected, {got.get(key)!r} found"
    return None


def said(run):
    return " ".join(run.stderr.split())[:300]


def refusal_differs(names, run):
    if run.returncode == 0:
        return f"accepted; a refusal that names {', '.join(names)} expected"
    if "Traceback" in run.stderr:
        return "a traceback"
    if "No such option" in run.stderr:
        return "the option is not known"
    missing = [name for name in names if name not in run.stderr]
    return f"the refusal does not name {', '.join(missing)}: {said(run)}" if missing else None


def result_differs(case, expect, run):
    if "refuse" in expect:
        return refusal_differs(expect["refuse"], run)
    if run.returncode != 0:
        return f"exit status {run.returncode}: {said(run)}"
    got = [loads(line) for line in run.stdout.splitlines() if line.strip()]
    if len(got) != len(expect["records"]):
        return f"{len(expect['records'])} records expected, {len(got)} found"
    for want, record in zip(expect["records"], got, strict=True):
        if problem := differs(want, record):
            return problem
    for key, value in case.get("keeps", {}).items():
        if key not in got[0] or not same(value, got[0][key]):
            return f"the key {key} did not survive"
    return None


# ---------------------------------------------------------------------------------------------- running


def options(how, folder, as_toml):
    if how == "auto":
        return []
    if not as_toml or any("=" not in item for item in how):
        return [word for item in how for word in ("--map", item)]
    table: dict[str, list[str]] = {}
    for item in how:
        key, _, path = item.partition("=")
        table.setdefault(key, []).append(path)
    name = os.path.join(folder, "map.toml")
    with open(name, "w", encoding="utf-8") as file:
        for key, paths in table.items():
            file.write(f"{json.dumps(key)} = {json.dumps(paths if len(paths) > 1 else paths[0])}\n")
    return ["--map-file", name]


def convert(program, case, how, as_toml):
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "in.jsonl")
        with open(name, "w", encoding="utf-8") as file:
            for record in case["input"]:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        command = [
            program,
            "convert",
            name,
            "-q",
            "--progress",
            "never",
            "--workers",
            "1",
            *options(how, folder, as_toml),
        ]
        return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300)


def check(job):
    program, case, alone, args = job
    name = case["id"] + ("/alone" if alone else "")
    expect = case["alone"] if alone else case["expect"]
    run = convert(program, case, "auto" if alone else case["how"], args.toml)
    problem = result_differs(case, expect, run)
    if problem is None and args.render and "records" in expect:
        problem = render_differs(program, expect["records"], run.stdout, args.tokenizer)
    return name, case["kind"], problem


# ---------------------------------------------------------------------------------------------- rendering


def render_differs(program, wanted, converted, folder):
    from tokenizers import Tokenizer

    if not any(m["role"] == "assistant" and m.get("weight") != 0 for record in wanted for m in record["messages"]):
        return None
    command = [program, "render", "-", "--tokenizer", folder, "-o", "-", "-q", "--progress", "never", "--workers", "1"]
    run = subprocess.run(command, input=converted, capture_output=True, text=True, encoding="utf-8", timeout=300)
    if run.returncode != 0:
        return f"render: {said(run)}"
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    documents = [json.loads(line) for line in run.stdout.splitlines() if line.strip()]
    if len(documents) != len(wanted):
        return f"render: {len(wanted)} documents expected, {len(documents)} found"
    for record, document in zip(wanted, documents, strict=True):
        ids, mask = document["input_ids"], document["loss_mask"]
        whole = tokenizer.decode(ids, skip_special_tokens=False)
        trained = tokenizer.decode([i for i, on in zip(ids, mask, strict=True) if on], skip_special_tokens=False)
        for problem in render_problems(record, whole, trained):
            return f"render: {problem}"
    return None


def packed(text):
    return "".join(text.split())


def render_problems(record, whole, trained):
    learned = []
    for message in record["messages"]:
        if message["role"] == "assistant" and message.get("weight") != 0:
            learned += [text_of(message.get("content")), message.get("reasoning") or ""]
            learned += [
                word
                for name, arguments in calls_of(message)
                for word in (name, *(arguments if isinstance(arguments, dict) else ()))
            ]
    for text in learned:
        if text.strip() not in trained:
            yield f"no loss on {text[:80]!r}"
    for message in record["messages"]:
        text = text_of(message.get("content")).strip()
        if (message["role"] == "assistant" and message.get("weight") != 0) or not text:
            continue
        if text not in whole and not (message["role"] == "tool" and packed(text) in packed(whole)):
            yield f"the {message['role']}'s text is missing: {text[:80]!r}"
        if len(text) > 5 and text in trained and not any(text in other for other in learned):
            yield f"loss on the {message['role']}'s text: {text[:80]!r}"


# ---------------------------------------------------------------------------------------------- the command


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="the kolibri-sft command")
    parser.add_argument("cases", help="schemas.jsonl")
    parser.add_argument("--kind", action="append", help="only cases of this kind")
    parser.add_argument("--id", action="append", help="only cases whose id holds this text")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--toml", action="store_true", help="mappings as a TOML file")
    parser.add_argument(
        "--render", action="store_true", help="render too; needs --tokenizer and the tokenizers package"
    )
    parser.add_argument("--tokenizer", help="folder in Hugging Face layout")
    parser.add_argument("-v", "--verbose", action="store_true", help="say why a case fails")
    args = parser.parse_args()
    if args.render and not args.tokenizer:
        parser.error("--render needs --tokenizer DIR")
    if args.render and importlib.util.find_spec("tokenizers") is None:
        parser.error("--render needs the tokenizers package: run this with the Python that kolibri-sft is installed in")
    with open(args.cases, encoding="utf-8") as file:
        cases = [json.loads(line) for line in file if line.strip()]
    cases = [c for c in cases if not args.kind or c["kind"] in args.kind]
    cases = [c for c in cases if not args.id or any(part in c["id"] for part in args.id)]
    jobs = [(args.program, c, alone, args) for c in cases for alone in ((False, True) if "alone" in c else (False,))]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(check, jobs))
    total, good = Counter(k for _, k, _ in results), Counter(k for _, k, problem in results if problem is None)
    for kind in dict.fromkeys(c["kind"] for c in cases):
        print(f"{kind:20} {good[kind]:4} of {total[kind]}")
    print(f"{'all':20} {sum(good.values()):4} of {sum(total.values())}")
    failed = [(name, problem) for name, _, problem in results if problem is not None]
    for name, problem in failed:
        print(f"failed: {name}" + (f": {problem}" if args.verbose else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
