"""backfill: which turns get reasoning, what the writer is shown, and what is not taken."""

import json

import pytest

from sft_toolkit.formats import parse_record
from sft_toolkit.stages.backfill import BackfillStage
from sft_toolkit.teachers.requests import Asking

REASONING = "Der Nutzer möchte eine Einnahme von 16,20 Euro buchen, also brauche ich das Werkzeug für Einnahmen."
TOOL = {"name": "buche_einnahme", "parameters": {"type": "object", "properties": {"betrag": {"type": "number"}}}}


def record(identifier="a", reasoning=None):
    call = {"id": "c1", "function": {"name": "buche_einnahme", "arguments": {"betrag": 16.2}}}
    called = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {
        "id": identifier,
        "tools": [TOOL],
        "messages": [
            {"role": "user", "content": f"Buche 16,20 Euro als Einnahme ({identifier})."},
            called if reasoning is None else {**called, "reasoning": reasoning},
            {"role": "tool", "tool_call_id": "c1", "content": "gebucht"},
            {"role": "assistant", "content": "Erledigt."},
        ],
    }


def question(given):
    """What the writer is asked about the record's first turn without reasoning."""
    stage = BackfillStage(Asking("w", "none", {}), "journal")
    return next(stage.requests(parse_record(given))).messages[-1]["content"]


def backfill(run_cli, serve, tmp_path, records, answers):
    """`answers`: what the server says on the first records, which are to be filled."""
    server = serve(answers={question(each): answer for each, answer in zip(records, answers, strict=False)})
    lines = b"".join(json.dumps(each).encode() + b"\n" for each in records)
    options = ["--teacher", server.url, "--model", "w", "--journal", tmp_path / "j", "--json"]
    found = run_cli("backfill", "-", *options, stdin=lines)
    assert found.returncode == 0, found.stderr
    return [json.loads(line) for line in found.stdout.splitlines()], json.loads(found.stderr), server


def test_a_turn_with_calls_and_no_reasoning_gets_it_and_every_other_turn_stays(run_cli, serve, tmp_path):
    given = [record("a"), record("b", reasoning="Schon da.")]
    rows, summary, server = backfill(run_cli, serve, tmp_path, given, [{"content": f" {REASONING}\n"}])
    filled, kept = (row["messages"] for row in rows)
    assert filled[1]["reasoning"] == REASONING
    assert filled[1]["backfill"] == {"model": "w"}
    assert filled[1]["language_verdict"]["stays"] is True
    assert filled[2:] == given[0]["messages"][2:]
    assert kept[1]["reasoning"] == "Schon da."
    assert summary["notes"] == {"turns: ok": 1}
    assert len(server.requests()) == 1


def test_a_thinking_writer_gives_what_stands_after_its_thinking(run_cli, serve, tmp_path):
    answer = {"content": f"Okay, the user wants me to write reasoning.\n</think>\n\n{REASONING}"}
    (row,), _, _ = backfill(run_cli, serve, tmp_path, [record("a")], [answer])
    assert row["messages"][1]["reasoning"] == REASONING


def test_marks_of_thinking_never_get_into_the_reasoning(run_cli, serve, tmp_path):
    answer = {"content": f"{REASONING}\n<THINK>\n{REASONING}"}
    (row,), summary, _ = backfill(run_cli, serve, tmp_path, [record("a")], [answer])
    assert "reasoning" not in row["messages"][1]
    assert summary["notes"] == {"turns: parser_misfiled": 1}


def test_the_writer_sees_the_tools_what_was_said_before_and_the_call_and_nothing_after_it():
    shown = question(record("a"))
    assert "Buche 16,20 Euro" in shown
    assert '"betrag":16.2' in shown
    assert '"properties"' in shown
    assert "gebucht" not in shown


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"content": 'Ich rufe also {"betrag": 16.2} auf, wie der Nutzer es möchte und verlangt.'}, "leak"),
        ({"content": "Der Nutzer möchte das, daher buche_einnahme(betrag=16.2) und nichts anderes."}, "leak"),
        ({"content": "Der Nutzer möchte das buchen.\n<tool_call>\n<function=buche_einnahme>"}, "leak"),
        ({"content": "Der Aufruf ist mir vorgegeben, also begründe ich ihn so gut ich kann."}, "leak"),
        ({"content": "Ja."}, "too_short"),
        ({"content": ""}, "empty"),
        ({"content": None, "refusal": "no"}, "refused"),
        ({"content": "The user wants to book an income, so I need the tool for incomes with that amount."}, "drift"),
    ],
)
def test_what_is_no_good_leaves_the_turn_as_it_was_and_is_counted(run_cli, serve, tmp_path, answer, kind):
    given = record("a")
    (row,), summary, _ = backfill(run_cli, serve, tmp_path, [given], [answer])
    assert "reasoning" not in row["messages"][1]
    assert {note: count for note, count in summary["notes"].items() if note[:6] != "leaks:"} == {f"turns: {kind}": 1}
    assert row["messages"][1]["tool_calls"][0]["function"]["arguments"] == {"betrag": 16.2}


def test_what_was_given_away_is_counted_by_kind(run_cli, serve, tmp_path):
    answers = [{"content": f"{REASONING} betrag: 16,2"}, {"content": f"{REASONING}\nbetrag: 16.2"}]
    _, summary, _ = backfill(run_cli, serve, tmp_path, [record("a"), record("b")], answers)
    assert summary["notes"] == {"leaks: its arguments name by name": 1, "turns: leak": 1, "turns: ok": 1}
