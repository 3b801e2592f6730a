"""Loops on records: `--loops` of language and mask as scripts rely on it, and the class `repetitive` of distill."""

import json

import pytest

LOOP = "Die Kiste passt hinein. " + "Ich prüfe das noch einmal. " * 20
SOUND = "Die Kiste ist 40 cm lang und passt damit sechsmal in den Wagen."


def record(identifier, *answers):
    """A record whose assistant turns have this reasoning and content."""
    messages = [{"role": "user", "content": "Wie viele Kisten passen hinein?"}]
    messages += [{"role": "assistant", "reasoning": reasoning, "content": content} for reasoning, content in answers]
    return json.dumps({"id": identifier, "messages": messages}).encode() + b"\n"


def run(run_cli, command, *options, lines):
    found = run_cli(command, "-", "--json", *options, stdin=b"".join(lines))
    assert found.returncode == 0, found.stderr
    return [json.loads(line) for line in found.stdout.splitlines()], json.loads(found.stderr)


@pytest.mark.parametrize("command", ["language", "mask"])
def test_each_assistant_message_is_given_its_loop_or_null(run_cli, command):
    lines = [record("a", (LOOP, "30"), (SOUND, "30")), record("b", (SOUND, LOOP))]
    (first, second), summary = run(run_cli, command, "--loops", "note", lines=lines)
    assert first["messages"][1]["loop"] == {"start": 24, "end": 563, "period": 5, "repeats": 20, "share": 0.9557}
    assert "loop" in first["messages"][2]
    assert first["messages"][2]["loop"] is None
    assert "loop" not in first["messages"][0]
    assert second["messages"][1]["loop"]["field"] == "content"
    assert summary["notes"]["loops"] == 2


@pytest.mark.parametrize("command", ["language", "mask"])
def test_a_record_with_a_loop_is_rejected_where_that_is_asked_for(run_cli, command, tmp_path):
    aside = tmp_path / "aside.jsonl"
    lines = [record("a", (SOUND, "30"), (LOOP, "30")), record("b", (SOUND, "30"))]
    rows, summary = run(run_cli, command, "--loops", "reject", "--quarantine", aside, lines=lines)
    assert [row["id"] for row in rows] == ["b"]
    assert summary["rejected"] == {"repetitive": 1}
    line = json.loads(aside.read_bytes())
    assert list(line) == ["origin", "reason", "detail", "partner", "record"]
    assert (line["reason"], line["partner"]) == ("repetitive", [])
    assert line["detail"] == f"a period of 5 words repeats 20 times: {LOOP[24:144]}"
    assert line["record"]["messages"][2]["loop"]["repeats"] == 20


@pytest.mark.parametrize("command", ["language", "mask"])
def test_nobody_looks_for_loops_unasked_and_an_unknown_policy_is_a_usage_error(run_cli, command):
    rows, summary = run(run_cli, command, lines=[record("a", (LOOP, "30"))])
    assert "loop" not in rows[0]["messages"][1]
    assert "loops" not in summary["notes"]
    found = run_cli(command, "-", "--loops", "drop", stdin=record("a", (LOOP, "30")))
    assert found.returncode == 2
    assert b"--loops: 'drop' is not one of 'note', 'reject'" in found.stderr
