"""Records by strangers: odd references, endless numbers, thousands of calls; a verdict, or one undecidable call."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.conversation import Conversation, Message, ToolCall
from sft_toolkit.formats import parse_record
from sft_toolkit.json_text import decode, decode_strictly, encode
from sft_toolkit.tool_calls import same_call
from sft_toolkit.tool_calls.decode import decode_arguments
from sft_toolkit.tool_calls.judge import Judge, Judgement
from sft_toolkit.tool_calls.results import compile_patterns, pair_results
from tests.conftest import RunCli

HOSTILE = Path(__file__).parents[2] / "cases" / "hostile"


def judged(name: str) -> Judgement:
    return Judge().judge(parse_record(json.loads((HOSTILE / f"{name}.jsonl").read_text())))


@pytest.mark.parametrize("name", ["schema_ref_superscript", "schema_ref_long_index"])
def test_a_reference_that_leads_nowhere_is_no_crash(name: str) -> None:
    """It stands under a `then` without an `if`, and so says nothing of the call."""
    assert not judged(name).verdicts


def test_an_integer_of_any_length_is_an_integer() -> None:
    assert not judged("integer_of_5000_digits").verdicts


@pytest.mark.parametrize("digits", ["640", "0"])
def test_a_verdict_does_not_depend_on_the_interpreters_limit_of_digits(digits: str, run_cli: RunCli) -> None:
    environment = {"PYTHONINTMAXSTRDIGITS": digits}
    done = run_cli("mask", HOSTILE / "integer_of_5000_digits.jsonl", "-o", "-", "--json", environment=environment)
    assert done.returncode == 0, done.stderr
    assert b'"masked' not in done.stderr and b"9" * 5000 in done.stdout


@pytest.mark.parametrize("length", [10, 599, 600, 4_299, 4_301, 20_000])
def test_long_integers_keep_every_digit(length: int) -> None:
    text = '{"n":' + "7" * length + "}"
    for value in (decode(text), decode_strictly(text), decode_arguments(text).value):
        assert encode(value) == text.encode()
    call = {"name": "f", "arguments": text}
    assert same_call(call, {"name": "f", "arguments": decode(text)}, [])
    assert not same_call(call, {"name": "f", "arguments": text.replace("7}", "8}")}, [])


@pytest.mark.parametrize("text", ["9" * 5_000 + "x", "[" + "9" * 5_000, '{"a": NaN, "b": ' + "9" * 5_000 + "}"])
def test_what_is_no_json_stays_so_with_long_integers(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(text)


def failing_calls(count: int, identity: str | None) -> Conversation:
    calls = [ToolCall("f", {"a": 1}, identity) for _ in range(count)]
    results = [Message("tool", "Error: no", tool_call_id=identity) for _ in range(count)]
    return Conversation("r", [Message("user", "?"), Message("assistant", None, None, calls), *results])


@pytest.mark.parametrize("identity", ["c", None])
def test_equal_failing_calls_of_one_message_cost_time_in_proportion(identity: str | None) -> None:
    seconds = []
    for count in (5_000, 40_000):
        conversation = failing_calls(count, identity)
        begin = time.process_time()
        judgement = Judge().judge(conversation)
        seconds.append(time.process_time() - begin)
        assert judgement.notes["tool_calls"] == count and not judgement.notes["undecidable_unpaired_results"]
    assert seconds[1] < 24 * seconds[0]


def test_many_turns_with_open_calls_cost_time_in_proportion() -> None:
    turns = [Message("assistant", None, None, [ToolCall("f", {"a": 1})]), Message("user", "?")] * 20_000
    begin = time.process_time()
    Judge().judge(Conversation("r", [Message("user", "?"), *turns]))
    assert time.process_time() - begin < 10


def test_results_find_the_nearest_open_call_of_their_id() -> None:
    def call(word: str, identity: str | None = "c") -> ToolCall:
        return ToolCall("f", {"word": word}, identity)

    def result(text: str, identity: str | None = "c") -> Message:
        return Message("tool", text, tool_call_id=identity)

    messages = [
        Message("user", "?"),
        Message("assistant", None, None, [call("a"), call("b")]),
        Message("assistant", None, None, [call("c"), call("d", None)]),
        result("1"),
        result("2", None),
        result("3"),
        result("4"),
        result("5"),
    ]
    found = pair_results(messages)
    assert {site: message.text for site, message in found.results.items()} == {
        (2, 0): "1",
        (1, 0): "3",
        (1, 1): "4",
    }
    assert found.unpaired == 2


def test_unknown_names_without_end_cost_little() -> None:
    tools = [{"name": f"tool_{number}", "parameters": {}} for number in range(3_000)]
    calls = [ToolCall("x" * 100_000, {}), *(ToolCall("tool_x", {}) for _ in range(2_000))]
    begin = time.process_time()
    (verdict,) = Judge().judge(Conversation("r", [Message("assistant", None, None, calls)], tools)).verdicts
    assert verdict.fault.reason == "unknown_tool" and len(verdict.fault.detail) < 300
    assert time.process_time() - begin < 5


def test_tools_of_a_known_name_need_no_declaration() -> None:
    tools: list[dict[str, Any]] = [{"name": "f", "parameters": {}}]
    calls = [Message("assistant", None, None, [ToolCall(name, {})]) for name in ("web_search", "web_searches", "f")]
    judge = Judge(known_tools=compile_patterns("--known-tool", ["web_search", r"browser\..*"]))
    judgement = judge.judge(Conversation("r", calls, tools))
    assert [verdict.turn for verdict in judgement.verdicts] == [1]
    assert judgement.notes["undeclared_known_tool"] == 1
