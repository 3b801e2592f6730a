"""verify against a scripted checker: records made from BFCL, whose calls are derived rightly or wrongly."""

import json

import pytest

RIGHT, WRONG_ARGUMENT, MISSING, OTHER_TOOL, SHUFFLED = "right", "wrong argument", "missing", "other tool", "shuffled"


def bfcl_records(shared, name, count):
    """Records whose one turn calls what BFCL holds to be right."""
    folder = shared / "data" / "bfcl"
    truths = [json.loads(line) for line in (folder / f"{name}.answer.json").read_text().splitlines()]
    questions = [json.loads(line) for line in (folder / f"{name}.json").read_text().splitlines()]
    return [record(question, truth) for question, truth in zip(questions[:count], truths[:count], strict=True)]


def own_records(count):
    """Records of the same form whose calls are of our own making: one call each, with two arguments."""
    tool = {"name": "buche_tisch", "parameters": {"type": "object", "properties": {"gast": {}, "personen": {}}}}
    return [
        record(
            {"question": [[{"role": "user", "content": f"Ein Tisch für {number + 2}, bitte."}]], "function": [tool]},
            {
                "id": f"own-{number}",
                "ground_truth": [{"buche_tisch": {"gast": [f"Gast {number}"], "personen": [number + 2]}}],
            },
        )
        for number in range(count)
    ]


def record(question, truth):
    calls = [
        {"name": tool, "arguments": {key: values[0] for key, values in arguments.items() if values[0] != ""}}
        for each in truth["ground_truth"]
        for tool, arguments in each.items()
    ]
    answer = {
        "role": "assistant",
        "content": None,
        "reasoning": f"Für die Frage {truth['id']} brauche ich genau das, was der Nutzer verlangt.",
        "backfill": {"model": "w"},
        "tool_calls": [{"id": f"c{i}", "function": call} for i, call in enumerate(calls)],
    }
    messages = [*question["question"][0], answer]
    return {"id": truth["id"], "messages": messages, "tools": question["function"]}


def calls_of(given):
    return [call["function"] for call in given["messages"][-1]["tool_calls"]]


def derived(calls, kind):
    """The calls that the checker makes of reasoning of this kind."""
    if kind == MISSING:
        return calls[:-1]
    if kind == OTHER_TOOL:
        return [{**calls[0], "name": "another.tool"}, *calls[1:]]
    if kind == SHUFFLED:
        return [{**call, "arguments": dict(reversed(call["arguments"].items()))} for call in reversed(calls)]
    if kind == WRONG_ARGUMENT:
        key, value = next(iter(calls[0]["arguments"].items()))
        return [{**calls[0], "arguments": {**calls[0]["arguments"], key: [value, "x"]}}, *calls[1:]]
    return calls


def native(calls):
    functions = [{"name": call["name"], "arguments": json.dumps(call["arguments"])} for call in calls]
    return {"content": None, "tool_calls": [{"id": "x", "function": each} for each in functions]}


def as_json(calls):
    return {"content": f"Here you are:\n```json\n{json.dumps({'calls': calls})}\n```"}


def as_blocks(calls):
    return {"content": "\n".join(f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls) or "nothing"}


def verify(run_cli, serve, tmp_path, records, answers, *options, script=()):
    server = serve(answers=answers, script=list(script))
    lines = b"".join(json.dumps(each).encode() + b"\n" for each in records)
    command = ["verify", "-", "--teacher", server.url, "--model", "c", "--journal", tmp_path / "j", "--json"]
    found = run_cli(*command, *options, stdin=lines)
    assert found.returncode == 0, found.stderr
    return [json.loads(line) for line in found.stdout.splitlines()], json.loads(found.stderr), server


@pytest.mark.parametrize(
    ("name", "write", "form"),
    [
        ("own", native, "tools"),
        ("own", as_blocks, "text"),
        ("BFCL_v4_simple_python", native, "tools"),
        ("BFCL_v4_parallel", native, "tools"),
        ("BFCL_v4_parallel", as_json, "json"),
        ("BFCL_v4_parallel", as_blocks, "text"),
    ],
)
def test_reasoning_stays_exactly_where_the_same_calls_follow_from_it(
    request, run_cli, serve, tmp_path, name, write, form
):
    records = own_records(100) if name == "own" else bfcl_records(request.getfixturevalue("shared"), name, 100)
    kinds = [(RIGHT, WRONG_ARGUMENT, MISSING, OTHER_TOOL, SHUFFLED)[index % 5] for index in range(len(records))]
    answers = {
        each["messages"][-1]["reasoning"]: write(derived(calls_of(each), kind))
        for each, kind in zip(records, kinds, strict=True)
    }
    rows, summary, server = verify(run_cli, serve, tmp_path, records, answers, "--answers", form)
    kept = ["reasoning" in row["messages"][-1] for row in rows]
    assert kept == [kind in (RIGHT, SHUFFLED) for kind in kinds]
    assert summary["notes"] == {"turns: agrees": 40, "turns: differs": 60}
    for row, given, kind in zip(rows, records, kinds, strict=True):
        assert [call["function"] for call in row["messages"][-1]["tool_calls"]] == calls_of(given)
        differs = row["messages"][-1]["verify"].get("differs_at", [])
        assert differs == expected_difference(calls_of(given), kind)
    for request in server.requests():
        system, user = request["body"]["messages"]
        assert (system["role"], user["role"]) == ("system", "user")
        assert user["content"].startswith("Für die Frage")


def expected_difference(calls, kind):
    if kind == WRONG_ARGUMENT:
        return [f"/arguments/{next(iter(calls[0]['arguments']))}"]
    return {MISSING: ["missing call"], OTHER_TOOL: ["/name"]}.get(kind, [])


def test_a_record_that_differs_is_rejected_where_that_is_asked_for(run_cli, serve, tmp_path):
    records = own_records(4)
    answers = {
        each["messages"][-1]["reasoning"]: native(derived(calls_of(each), kind))
        for each, kind in zip(records, [RIGHT, MISSING, RIGHT, WRONG_ARGUMENT], strict=True)
    }
    quarantine = ("--mismatch", "quarantine", "--on-error", "quarantine", "--quarantine", tmp_path / "rejected.jsonl")
    rows, summary, _ = verify(run_cli, serve, tmp_path, records, answers, *quarantine)
    assert [row["id"] for row in rows] == [records[0]["id"], records[2]["id"]]
    assert summary["rejected"] == {"call_not_derived": 2}


def test_more_than_half_of_the_votes_must_agree(run_cli, serve, tmp_path):
    (given,) = own_records(1)
    answers = {given["messages"][-1]["reasoning"]: native(calls_of(given))}
    (row,), _, server = verify(run_cli, serve, tmp_path, [given], answers, "--votes", "3")
    assert row["messages"][-1]["verify"] == {"model": "c", "votes": 3, "agree": 3}
    assert len({request["body"]["seed"] for request in server.requests()}) == 3


@pytest.mark.parametrize(
    ("script", "kept", "rejected"),
    [
        (["ok", "ok", "422"], True, {}),
        (["ok", "422", "422"], None, {"no_answer": 1}),
        (["ok", "truncated", "truncated"], None, {"no_answer": 1}),
    ],
)
def test_votes_that_are_missing_do_not_make_a_majority(run_cli, serve, tmp_path, script, kept, rejected):
    (given,) = own_records(1)
    answers = {given["messages"][-1]["reasoning"]: native(calls_of(given))}
    options = ("--votes", "3", "--concurrency", "1")
    rows, summary, _ = verify(run_cli, serve, tmp_path, [given], answers, *options, script=script)
    assert summary["rejected"] == rejected
    assert ["reasoning" in row["messages"][-1] for row in rows] == ([] if kept is None else [kept])


def test_reasoning_that_backfill_did_not_write_is_checked_only_on_demand(run_cli, serve, tmp_path):
    (given,) = own_records(1)
    del given["messages"][-1]["backfill"]
    (row,), _, server = verify(run_cli, serve, tmp_path, [given], {})
    assert row["messages"][-1]["reasoning"] == given["messages"][-1]["reasoning"]
    assert server.requests() == []
    (row,), _, _ = verify(run_cli, serve, tmp_path, [given], {}, "--all-turns")
    assert "reasoning" not in row["messages"][-1]


def test_a_refusal_is_no_derivation_and_rejects_the_record(run_cli, serve, tmp_path):
    (given,) = own_records(1)
    answers = {given["messages"][-1]["reasoning"]: {"content": None, "refusal": "no"}}
    rows, summary, _ = verify(run_cli, serve, tmp_path, [given], answers)
    assert (rows, summary["rejected"]) == ([], {"no_answer": 1})


@pytest.mark.parametrize("mismatch", ["strip", "quarantine"])
def test_reasoning_that_gives_the_call_away_fails_unasked(run_cli, serve, tmp_path, shared, mismatch):
    leaking, sound = bfcl_records(shared, "BFCL_v4_simple_python", 2)
    (call,) = calls_of(leaking)
    leaking["messages"][-1]["reasoning"] = f"Der Aufruf ist {call['name']}({json.dumps(call['arguments'])})."
    for each in (leaking, sound):
        del each["messages"][-1]["backfill"]
    answers = {each["messages"][-1]["reasoning"]: native(calls_of(each)) for each in (leaking, sound)}
    options = ("--all-turns", "--mismatch", mismatch, "--quarantine", tmp_path / "aside.jsonl")
    rows, summary, server = verify(run_cli, serve, tmp_path, [leaking, sound], answers, *options)
    assert len(server.requests()) == 1
    assert summary["notes"] == {"turns: agrees": 1, "turns: leak": 1}
    assert rows[-1]["messages"][-1]["reasoning"] == sound["messages"][-1]["reasoning"]
    if mismatch == "strip":
        assert "reasoning" not in rows[0]["messages"][-1]
        assert rows[0]["messages"][-1]["verify"] == {"leak": "the call as an object or as code"}
    else:
        assert summary["rejected"] == {"leak": 1}
        assert len(rows) == 1
