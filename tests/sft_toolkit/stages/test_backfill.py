"""backfill: which turns get reasoning, what the writer is shown, and what is not taken."""

import json

import pytest

from sft_toolkit.conversation import ToolCall
from sft_toolkit.formats import parse_record
from sft_toolkit.stages.backfill import BackfillStage
from sft_toolkit.teachers.leaks import quotes_call
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
    assert summary["notes"] == {f"turns: {kind}": 1}
    assert row["messages"][1]["tool_calls"][0]["function"]["arguments"] == {"betrag": 16.2}


CALL = ToolCall("buche_einnahme", {"betrag": 5, "zweck": "Miete"})


@pytest.mark.parametrize(
    "text",
    [
        'so {"betrag": 5, "zweck": "Miete"} ist es',
        'so {"zweck":"Miete",\n"betrag":5.0} ist es',
        "so {'betrag': 5, 'zweck': 'Miete'} ist es",
        "so {'zweck': 'Miete', 'betrag': 5} ist es",
        'so {"name": "buche_einnahme", "arguments": {}} ist es',
        "so buche_einnahme(5) ist es",
        'so buche_einnahme (betrag=5, zweck="Miete") ist es',
    ],
)
def test_a_call_is_quoted_whatever_the_order_spacing_or_quotes(text):
    assert quotes_call(text, CALL)


@pytest.mark.parametrize(
    "text",
    [
        "Ich nehme buche_einnahme mit dem Betrag 5 und dem Zweck Miete.",
        "Das Werkzeug buche_einnahme() passt.",
        "Hier hilft buche_einnahme (das Werkzeug für Einnahmen) mit 5 und Miete.",
        'Eine Antwort wie {"status": "ok"} ist zu erwarten.',
        "{ unvollständig",
    ],
)
def test_plain_words_are_no_quotation(text):
    assert not quotes_call(text, CALL)


def test_a_bare_word_that_stands_for_arguments_may_be_named():
    call = ToolCall("suche", "Berlin", problem="arguments is not JSON")
    assert not quotes_call("Der Nutzer fragt nach Berlin.", call)


def test_a_call_without_arguments_is_not_quoted_by_an_empty_object():
    assert not quotes_call("Das Ergebnis war {}.", ToolCall("liste", {}))


@pytest.mark.parametrize("levels", [200, 900, 20_000])
def test_a_text_that_nests_without_end_quotes_nothing_and_breaks_nothing(levels: int) -> None:
    """As a model writes it that has lost itself."""
    assert not quotes_call('{"a":' * levels + "1" + "}" * levels, CALL)
    assert quotes_call(f"{json.dumps(CALL.arguments)} " + '{"a":' * levels, CALL)
