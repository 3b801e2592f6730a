"""What became of calls: pairing results, recognising failures, reading the environment's error codes."""

from __future__ import annotations

from typing import Any

import pytest

from sft_toolkit.conversation import Message, ToolCall
from sft_toolkit.errors import UsageError
from sft_toolkit.tool_calls.results import begins_with, carries_code, compile_patterns, failed, pair_results


def calls(*ids: str | None) -> Message:
    return Message("assistant", tool_calls=[ToolCall("t", {}, id=id_) for id_ in ids])


def result(content: Any, id_: str | None = None, **extra: Any) -> Message:
    return Message("tool", content, tool_call_id=id_, extra=extra)


def paired(*messages: Message) -> tuple[dict[tuple[int, int], str], int]:
    pairing = pair_results(messages)
    return {site: message.text for site, message in pairing.results.items()}, pairing.unpaired


def test_results_pair_by_id_in_any_order() -> None:
    assert paired(calls("a", "b"), result("B", "b"), result("A", "a")) == ({(0, 0): "A", (0, 1): "B"}, 0)


def test_an_id_used_twice_means_the_nearest_open_call() -> None:
    twice = [calls("a"), result("first", "a"), calls("a"), result("second", "a")]
    assert paired(*twice) == ({(0, 0): "first", (2, 0): "second"}, 0)
    late = [calls("a"), calls("a"), result("second", "a"), result("first", "a")]
    assert paired(*late) == ({(0, 0): "first", (1, 0): "second"}, 0)


def test_an_id_used_twice_in_one_turn_means_its_calls_in_order() -> None:
    assert paired(calls("a", "a"), result("A", "a"), result("B", "a")) == ({(0, 0): "A", (0, 1): "B"}, 0)


def test_results_without_ids_pair_by_position_if_the_counts_agree() -> None:
    assert paired(calls(None, None), result("A"), result("B")) == ({(0, 0): "A", (0, 1): "B"}, 0)
    assert paired(calls(None, None), result("A")) == ({}, 1)
    assert paired(calls(None), result("A"), result("B")) == ({}, 2)


def test_position_fills_what_ids_left_open() -> None:
    assert paired(calls("a", "b"), result("B", "b"), result("A")) == ({(0, 0): "A", (0, 1): "B"}, 0)


def test_position_never_reaches_back_beyond_the_last_calling_turn() -> None:
    messages = [calls("a"), Message("user", "wait"), calls("b"), result("B", "b"), result("?")]
    assert paired(*messages) == ({(2, 0): "B"}, 1)


def test_a_late_result_finds_its_call_by_id() -> None:
    messages = [calls("a"), Message("user", "wait"), calls("b"), result("B", "b"), result("A", "a")]
    assert paired(*messages) == ({(0, 0): "A", (2, 0): "B"}, 0)


@pytest.mark.parametrize(
    "content",
    [
        "Error",
        "Error: order not found",
        "  ERROR: relation does not exist",
        "error[E0308]: mismatched types",
        "Traceback (most recent call last):\n  …",
        '{"error": "limit"}',
        '{"error": {"code": 5}}',
        '{"error": true, "data": []}',
        '{"success": false}',
        '{"is_error": true}',
        '{"isError": true, "content": []}',
        '{"status": "error"}',
        '{"status": "Failed"}',
        '{"exit_code": 1, "stdout": ""}',
        '{"exit_code": "1"}',
        '{"returncode": -9.0}',
        '{"returncode": -9}',
        [{"type": "text", "text": "Error: in a part"}],
    ],
)
def test_a_failure_is_told_by_a_flag_or_by_the_first_words(content: Any) -> None:
    assert failed(result(content)) is True


@pytest.mark.parametrize(
    "content",
    [
        "",
        None,
        "ok",
        "[]",
        "Errors: 0",
        "error-free",
        "No Error: all is well",
        "The log says: Error: limit",
        '{"results": [{"title": "Error handling", "error": "yes"}], "failed": 0}',
        '{"results": [], "error": null}',
        '{"error": ""}',
        '{"error": [], "response": 1}',
        '{"error": false}',
        '{"success": null}',
        '{"is_error": "no"}',
        '{"status": "sent"}',
        '{"status": 200}',
        '{"exit_code": 0}',
        '{"exit_code": "0"}',
        '{"exit_code": "unknown"}',
        '{"error": "cut off',
        '["Error"]',
    ],
)
def test_what_only_mentions_an_error_did_not_fail(content: Any) -> None:
    assert failed(result(content)) is False


@pytest.mark.parametrize("extra", [{"is_error": True}, {"status": "error"}, {"exit_code": 2}, {"error": "limit"}])
def test_a_flag_beside_the_content_counts(extra: dict[str, Any]) -> None:
    assert failed(result("5", **extra)) is True


def test_no_result_is_unknown() -> None:
    assert failed(None) is None


def test_configured_patterns_match_at_the_start_only() -> None:
    patterns = compile_patterns("failure_patterns", ["Fehler", r"HTTP [45]\d\d"])
    assert failed(result("Fehler: Limit"), patterns)
    assert failed(result("HTTP 503"), patterns)
    assert not failed(result("Kein Fehler"), patterns)
    assert not failed(result("HTTP 200"), patterns)


def test_patterns_also_match_the_error_message_inside_json() -> None:
    patterns = compile_patterns("unknown_tool_patterns", ["(?i)unknown tool"])
    assert begins_with(patterns, result('{"error": "Unknown tool: pay"}'))
    assert begins_with(patterns, result('{"error": {"message": "unknown tool"}}'))
    assert not begins_with(patterns, result('{"note": "unknown tool"}'))


def test_a_bad_pattern_names_its_option() -> None:
    with pytest.raises(UsageError, match=r"`failure_patterns` '\(' is not a regular expression"):
        compile_patterns("failure_patterns", ["("])


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (result('{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}'), -32601),
        (result('{"code": -32602, "message": "Invalid params"}'), -32602),
        (result("MCP error -32602: Invalid arguments for tool pay"), -32602),
        (result("Error: MCP error -32601: Method not found"), -32601),
        (result("", error={"code": -32601}), -32601),
        (result("the code was -32601"), None),
        (result('{"text": "code -32601"}'), None),
        (result('{"error": {"code": "-32601"}}'), None),
    ],
)
def test_json_rpc_codes_are_read_where_they_are_codes(message: Message, code: int | None) -> None:
    assert [known for known in (-32601, -32602) if carries_code(message, known)] == ([code] if code else [])
