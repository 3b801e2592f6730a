"""`kolibri-sft check` as a person runs it: each thing that would train wrongly, built by hand."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.byte_tokenizer import CHATML, CONTROL, write_byte_tokenizer
from tests.conftest import RunCli
from tests.terminal import bare, on_terminal

ALL_WELL = """\
ok       header           a prompt gives <|im_start|>assistant↵: no loss on it
ok       stop             <|im_end|> ends an answer, with loss
ok       eos              <|im_end|> ends an answer
ok       bos              none: the tokenizer names no bos_token
ok       loss             decodes to what a turn says: kolibrianswer<|im_end|>
ok       roles            system, developer, user, tool: all written
ok       tools            declared tools are written
ok       tool calls       written, also several in a turn
ok       reasoning        written before the last answer
ok       history          keeps reasoning of earlier exchanges
ok       effort           the template reads none: labels of effort would not show; --effort-sentences states it
ok       generation tags  none, and none needed: turns are traced
ok       straddles        no token lies across the bounds of a turn, line breaks included
ok       control text     <|im_end|> in a message is read as plain text
"""
WRITES_TOOLS = "{% for tool in tools or [] %}{{ tool | tojson }}{% endfor %}" + CHATML
CALLING = {
    "id": "calls",
    "messages": [
        {"role": "user", "content": "Warm?"},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "get", "arguments": {}}}]},
    ],
}
UNTRAINED = {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!", "weight": 0}]}


def findings(done: subprocess.CompletedProcess[bytes]) -> dict[str, tuple[str, str]]:
    """Level and sentence by subject."""
    lines = [re.split(r"\s{2,}", line, maxsplit=2) for line in done.stdout.decode().splitlines()]
    return {subject: (level, said) for level, subject, said in lines}


def sample(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_sound_template_is_told_line_by_line(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("check", write_byte_tokenizer(tmp_path, WRITES_TOOLS))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == ALL_WELL


def test_tools_that_a_template_never_writes_are_a_warning_and_counted_in_a_sample(
    run_cli: RunCli, tmp_path: Path
) -> None:
    tools = [{"name": "get", "parameters": {"type": "object", "properties": {}}}]
    records = sample(tmp_path / "records.jsonl", {**CALLING, "tools": tools})
    folder = write_byte_tokenizer(tmp_path / "tokenizer")
    done = run_cli("check", folder, records)
    assert done.returncode == 0
    assert findings(done)["tools"][0] == "warning"
    assert "tools_not_rendered: 1; kolibri-sft render --tools-in-system" in done.stdout.decode()
    written = run_cli("check", folder, records, "--tools-in-system")
    assert "tools_in_system: 1" in written.stdout.decode() and "tools_not_rendered" not in written.stdout.decode()


def test_each_template_that_is_taken_unasked_is_checked_under_its_name(run_cli: RunCli, tmp_path: Path) -> None:
    folder = write_byte_tokenizer(tmp_path)
    named = folder / "additional_chat_templates"
    named.mkdir()
    (named / "tool_use.jinja").write_text("{% for tool in tools %}{{ tool | tojson }}{% endfor %}" + CHATML)
    (named / "rag.jinja").write_text("{% for text in documents %}{{ text }}{% endfor %}" + CHATML)
    done = findings(run_cli("check", folder))
    assert done["templates"][1].startswith(
        "default, rag, tool_use: tool_use takes records that declare tools, default takes all others"
    )
    assert done["tool_use: tools"] == ("ok", "declared tools are written")
    assert done["tool_use: stop"][0] == done["default: stop"][0] == "ok"
    assert "default: tools" not in done and "rag: stop" not in done
    assert findings(run_cli("check", folder, "--chat-template", "rag"))["stop"][0] == "ok"


def test_answers_that_nothing_ends_are_an_error(run_cli: RunCli, tmp_path: Path) -> None:
    endless = CHATML.replace("<|im_end|>", "")
    done = run_cli("check", write_byte_tokenizer(tmp_path, endless, eos_token=None))
    assert done.returncode == 1
    assert findings(done)["stop"] == (
        "error",
        "no token ends an answer: the model would not learn to stop; "
        "end answers with a control token, or give the tokenizer an eos_token",
    )
    assert done.stderr.decode().startswith(f"error: {tmp_path}: 1 of ")


def test_a_second_bos_is_an_error(run_cli: RunCli, tmp_path: Path) -> None:
    twice = "{{ bos_token + bos_token }}" + CHATML
    folder = write_byte_tokenizer(tmp_path, twice, (*CONTROL, "<s>"), bos_token="<s>")
    done = run_cli("check", folder)
    assert done.returncode == 1
    assert findings(done)["bos"][0] == "error"
    assert "<s> occurs 2 times" in findings(done)["bos"][1]


@pytest.mark.parametrize(("template", "source"), [("{{ bos_token }}" + CHATML, "template"), (CHATML, "tokenizer")])
def test_one_bos_is_well_wherever_it_comes_from(run_cli: RunCli, tmp_path: Path, template: str, source: str) -> None:
    config = {"bos_token": "<s>", "add_bos_token": source == "tokenizer"}
    done = run_cli("check", write_byte_tokenizer(tmp_path, template, (*CONTROL, "<s>"), **config))
    assert done.returncode == 0
    assert findings(done)["bos"] == ("ok", f"<s> once, from the {source}")


def test_a_bos_that_nobody_writes_wants_a_look(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("check", write_byte_tokenizer(tmp_path, CHATML, (*CONTROL, "<s>"), bos_token="<s>"))
    assert done.returncode == 0
    assert findings(done)["bos"][0] == "warning"


def test_an_eos_that_ends_no_answer_wants_a_look(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("check", write_byte_tokenizer(tmp_path, CHATML, (*CONTROL, "</s>"), eos_token="</s>"))
    assert findings(done)["eos"] == (
        "warning",
        "</s> is not what ends an answer; add <|im_end|> to eos_token_id in generation_config.json",
    )


def test_markers_that_are_no_tokens_of_the_tokenizer_want_a_look(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("check", write_byte_tokenizer(tmp_path, CHATML, ("</s>",), eos_token="</s>"))
    assert findings(done)["markers"][0] == "warning"
    assert "<|im_start|> or <|im_end|>" in findings(done)["markers"][1]


def test_a_template_that_ignores_the_generation_prompt_trains_its_header(run_cli: RunCli, tmp_path: Path) -> None:
    deaf = CHATML.partition("{%- if add_generation_prompt %}")[0]
    level, said = findings(run_cli("check", write_byte_tokenizer(tmp_path, deaf)))["header"]
    assert level == "warning"
    assert "<|im_start|>assistant↵: it carries loss" in said


def test_an_answer_that_begins_with_a_line_break_shares_a_token(run_cli: RunCli, tmp_path: Path) -> None:
    folder = write_byte_tokenizer(tmp_path, merges=[("Ċ", "Ċ")])
    level, said = findings(run_cli("check", folder))["straddles"]
    assert level == "warning"
    assert said.startswith("an answer that begins with a line break shares 1 token with the header")


def test_a_sample_is_counted_and_its_faults_are_errors(run_cli: RunCli, tmp_path: Path) -> None:
    mute = CHATML.replace("message.tool_calls or []", "[]")
    folder = write_byte_tokenizer(tmp_path / "tokenizer", mute)
    records = sample(tmp_path / "r.jsonl", CALLING, UNTRAINED, {"messages": []})
    done = run_cli("check", folder, records)
    assert done.returncode == 1
    lines = [" ".join(line.split()) for line in done.stdout.decode().splitlines() if " sample " in line]
    assert lines == [
        "ok sample 3 records, 23 tokens, 0.0% of them with loss",
        f"error sample empty_conversation: 1, first {records}:3: messages is empty",
        f"error sample tool_calls_not_rendered: 1, first {records}:1: "
        "the chat template does not write the tool calls of message 1",
        "warning sample records without a token that carries loss: 1; render rejects them",
    ]
    assert "2 of" in done.stderr.decode()


def test_dropped_reasoning_of_a_sample_points_to_per_exchange(run_cli: RunCli, tmp_path: Path) -> None:
    forgetful = CHATML.replace("if message.reasoning", "if message.reasoning and loop.last")
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "reasoning": "Hm.", "content": "!"}]
    records = sample(tmp_path / "r.jsonl", {"messages": turns * 3})
    done = run_cli("check", write_byte_tokenizer(tmp_path / "tokenizer", forgetful), records)
    assert done.returncode == 0
    assert findings(done)["history"][0] == "warning"
    assert re.search(r"warning +sample +dropped_reasoning: 2; kolibri-sft render --per-exchange", done.stdout.decode())


def test_a_terminal_shows_levels_in_colour_and_advice_on_lines_of_its_own(tmp_path: Path) -> None:
    folder = write_byte_tokenizer(tmp_path, CHATML.replace("message.tool_calls or []", "[]"))
    code, seen = on_terminal(["check", folder], NO_COLOR="")
    assert code == 0
    assert "\x1b[33mwarning\x1b[0m  tool calls " in seen and "\x1b[32mok     \x1b[0m  header " in seen
    lines = [line.strip() for line in bare(seen).splitlines()]
    assert "for tool-calling data, choose another template" in lines
    assert max(map(len, lines)) <= 80


def test_json_holds_facts_sample_and_findings(run_cli: RunCli, tmp_path: Path) -> None:
    folder = write_byte_tokenizer(tmp_path / "tokenizer")
    done = run_cli("check", folder, sample(tmp_path / "r.jsonl", CALLING), "--json")
    reported = json.loads(done.stdout)
    assert done.returncode == 0
    assert reported["facts"]["stops"] == ["<|im_end|>"]
    assert reported["facts"]["roles"] == {"system": True, "developer": True, "user": True, "tool": True}
    assert reported["sample"]["records"] == 1
    assert reported["findings"][1] == {
        "level": "ok",
        "subject": "stop",
        "said": "<|im_end|> ends an answer, with loss",
        "advice": "",
    }


def test_a_template_file_replaces_that_of_the_folder(run_cli: RunCli, tmp_path: Path) -> None:
    (tmp_path / "other.jinja").write_text(CHATML.replace("if message.reasoning", "if false"))
    folder = write_byte_tokenizer(tmp_path / "tokenizer")
    done = run_cli("check", folder, "--chat-template", tmp_path / "other.jinja")
    assert findings(done)["reasoning"][0] == "warning"


def test_labels_that_the_template_does_not_show_are_a_warning_that_names_the_way(
    run_cli: RunCli, tmp_path: Path
) -> None:
    folder = write_byte_tokenizer(tmp_path)
    messages = [{"role": "user", "content": "q", "effort": "low"}, {"role": "assistant", "content": "a"}]
    (tmp_path / "r.jsonl").write_text(json.dumps({"id": "r", "effort": "low", "messages": messages}) + "\n")
    (tmp_path / "low.toml").write_text("[low]\nsentence = 'Denke kurz.'\n")
    unstated = run_cli("check", folder, tmp_path / "r.jsonl").stdout.decode()
    assert "warning  sample           effort_not_rendered: 1; --effort-sentences states" in unstated
    stated = run_cli("check", folder, tmp_path / "r.jsonl", "--effort-sentences", tmp_path / "low.toml")
    assert "effort_not_rendered" not in stated.stdout.decode()
    assert findings(stated)["effort"] == (
        "warning",
        "a prompt of effort none or medium or high does not say so; give those levels a table in --effort-sentences",
    )


def test_a_folder_without_a_tokenizer_is_an_error(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("check", tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"error: ")


@pytest.mark.parametrize(
    ("name", "subject", "level"),
    [
        ("qwen3", "history", "warning"),
        ("llama3", "tool calls", "warning"),
        ("gptoss", "stop", "warning"),
        ("gptoss", "effort", "warning"),
        ("llama3_training", "generation tags", "ok"),
        ("deepseekv3_training", "generation tags", "warning"),
    ],
)
def test_real_templates_are_told_apart(run_cli: RunCli, tmp_path: Path, name: str, subject: str, level: str) -> None:
    found = importlib.util.find_spec("trl")
    if found is None or found.origin is None:
        pytest.skip("trl is not installed")
    template = (Path(found.origin).parent / "chat_templates" / f"{name}.jinja").read_text()
    control = sorted(set(re.findall(r"<\|[a-z_]+\|>|<｜[^｜]+｜>", template)) | {"<s>", "</s>"})
    done = run_cli("check", write_byte_tokenizer(tmp_path, template, control, bos_token="<s>", eos_token="</s>"))
    assert findings(done)[subject][0] == level


def test_a_sample_is_checked_as_the_documents_that_render_makes_of_it(run_cli: RunCli, tmp_path: Path) -> None:
    """Two exchanges, low and high: the first becomes a document, and both one, with loss on the second."""
    exchanges = [
        message
        for effort in ("low", "high")
        for message in (
            {"role": "user", "content": "q", "effort": effort},
            {"role": "assistant", "content": "a", "reasoning": "Hm."},
        )
    ]
    none = [{"role": "user", "content": "q", "effort": "none"}, exchanges[1]]
    folder = write_byte_tokenizer(tmp_path, CHATML)
    (tmp_path / "stated.toml").write_text("".join(f"[{e}]\nsentence = 'Denke {e}.'\n" for e in ("low", "high")))
    given = ("check", folder, sample(tmp_path / "r.jsonl", {"messages": exchanges}, {"id": "n", "messages": none}))
    stated = ("--effort-sentences", tmp_path / "stated.toml")
    lines = run_cli(*given, *stated).stdout.decode().splitlines()
    said = [" ".join(line.split()) for line in lines if " sample " in line]
    assert said[0].startswith("ok sample 2 records in 2 documents, ")
    assert any(line.startswith("error sample reasoning_under_none: 1, first ") for line in said)
    assert any(
        line.startswith("ok sample effort_split: 1; records of several efforts become a document") for line in said
    )
    assert json.loads(run_cli(*given, *stated, "--json").stdout)["sample"]["documents"] == 2
    unstated = json.loads(run_cli(*given, "--json").stdout)["sample"]
    assert (unstated["documents"], unstated["notes"].get("effort_split")) == (1, None)
