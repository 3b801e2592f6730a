"""Inputs that broke other tools: every load.arguments, load.tools, load.reasoning, mask.* and verify.equal case.

What a case expects is checked as it is written, except where the decided rules differ; those are named in `DECIDED`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from sft_toolkit.conversation import Conversation
from sft_toolkit.formats import parse_record
from sft_toolkit.json_text import decode, encode_text
from sft_toolkit.tool_calls import same_call, same_calls
from sft_toolkit.tool_calls.judge import Judge, Judgement
from sft_toolkit.tool_calls.results import failed, pair_results
from sft_toolkit.tool_calls.schema import BrokenSchema, compile_tools
from tests.conftest import CASES as FOLDER

LINES = (FOLDER / "tool_and_mask_cases.jsonl").read_text(encoding="utf-8").splitlines()
CASES: dict[str, dict[str, Any]] = {case["id"]: case for case in map(decode, LINES)}

DECIDED = {
    # A repeat is bad if it fails again with the same text; this one has no result, so only the strict rule masks it.
    "result-order-by-id": {"repeats": "strict"},
}


def ids(*kinds: str) -> list[str]:
    return [name for name, case in CASES.items() if case["kind"].startswith(kinds)]


def loaded(name: str) -> Conversation:
    return parse_record(CASES[name]["input"])


def judged(name: str, **rules: Any) -> Judgement:
    return Judge(**rules).judge(loaded(name))


def expectations(name: str) -> list[dict[str, Any]]:
    """What a case says about single turns; some only describe a policy in words and are tested by name below."""
    stated = CASES[name]["expect"].get("mask", [])
    return [stated] if isinstance(stated, dict) else [line for line in stated if isinstance(line, dict)]


@pytest.mark.parametrize("name", ids("mask.", "load.arguments"))
def test_turns_are_masked_as_the_case_expects(name: str) -> None:
    verdicts = {verdict.turn: verdict for verdict in judged(name, **DECIDED.get(name, {})).verdicts}
    for expected in expectations(name):
        assert (expected["turn"] in verdicts) is bool(expected["masked"])
        if not expected["masked"]:
            continue
        verdict = verdicts[expected["turn"]]
        assert verdict.fault.reason == expected.get("reason", verdict.fault.reason)
        assert verdict.fault.path == expected.get("path", verdict.fault.path)
        assert verdict.fault.suggestion == expected.get("suggest", verdict.fault.suggestion)
        assert verdict.fault.of == expected.get("of", verdict.fault.of)
        assert list(verdict.calls) == expected.get("calls", list(verdict.calls))
        assert expected.get("detail", "") in verdict.fault.detail


@pytest.mark.parametrize("name", [name for name in ids("mask.") if "failed" in CASES[name]["expect"]])
def test_failures_are_found_as_the_case_expects(name: str) -> None:
    conversation = loaded(name)
    results = pair_results(conversation.messages).results
    found = {
        call.id: failed(results.get((turn, index)))
        for turn, message in enumerate(conversation.messages)
        for index, call in enumerate(message.tool_calls)
    }
    for call_id, expected in CASES[name]["expect"]["failed"].items():
        assert found[call_id] is expected


@pytest.mark.parametrize("name", ids("verify.equal"))
def test_calls_are_the_same_as_the_case_expects(name: str) -> None:
    given = CASES[name]["input"]
    conversation = loaded(name)
    calls = conversation.messages[1].tool_calls
    others = given.get("other_calls") or [given["other_call"]]
    assert same_calls(calls, others, conversation.tools) is given["expect_equal"]
    if len(calls) == len(others) == 1:
        assert same_call(calls[0], others[0], conversation.tools) is given["expect_equal"]


@pytest.mark.parametrize("name", ["differ-null-vs-missing", "differ-number-string"])
def test_the_other_form_of_a_differing_call_is_invalid(name: str) -> None:
    other = CASES[name]["input"]["other_call"]
    assert compile_tools(loaded(name).tools)[other["name"]].rejection(other["arguments"]) is not None


def test_a_19_digit_integer_equals_its_exponent_form_and_keeps_its_digits() -> None:
    conversation = loaded("args-big-integer")
    in_exponent_form = {"name": "get_order", "arguments": '{"order_id": 2.512292042121000001e18}'}
    assert same_call(conversation.messages[1].tool_calls[0], in_exponent_form, conversation.tools)
    assert "2512292042121000001" in encode_text(conversation.to_record())


@pytest.mark.parametrize("name", [name for name in CASES if "same_call_as" in CASES[name]["expect"]])
def test_arguments_load_as_the_call_that_was_meant(name: str) -> None:
    conversation = loaded(name)
    assert same_call(conversation.messages[1].tool_calls[0], CASES[name]["expect"]["same_call_as"], conversation.tools)


@pytest.mark.parametrize("given", ["", " \n", None, "null"])
def test_blank_and_null_arguments_load_as_the_empty_object(given: Any) -> None:
    record = json.loads(encode_text(CASES["args-empty-string"]["input"]))
    record["messages"][1]["tool_calls"][0]["function"]["arguments"] = given
    assert parse_record(record).messages[1].tool_calls[0].arguments == {}


def test_a_peeled_layer_leaves_a_note() -> None:
    assert loaded("args-double-encoded-object").notes == ["double_encoded_arguments"]


def test_reasoning_under_another_name_loads_as_reasoning() -> None:
    message = loaded("render-reasoning-field-alias").messages[1]
    assert (message.reasoning, message.content) == ("weil x", "b")


def test_tools_load_from_text_flat_and_with_parameters_as_text() -> None:
    given = CASES["schema-tools-as-string"]["input"]
    flat = decode(given["tools_string"])
    wrapped = [{"type": "function", "function": tool} for tool in flat]
    texts = [{**tool, "parameters": encode_text(tool["parameters"])} for tool in flat]
    for tools in (given["tools_string"], flat, wrapped, texts, encode_text(wrapped)):
        conversation = parse_record({"messages": given["messages"], "tools": tools})
        assert conversation.tools == wrapped
        assert Judge().judge(conversation).verdicts == []


def test_nulls_of_column_storage_are_dropped_from_tools_and_meant_nulls_kept() -> None:
    first, second = (tool["function"] for tool in loaded("schema-arrow-null-padding").tools)
    assert first["parameters"] == {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    assert second == {
        "name": "b",
        "parameters": {"type": "object", "properties": {"y": {"type": "integer", "default": None}}},
    }


def test_the_turn_masked_for_one_parallel_call_is_whole() -> None:
    (verdict,) = judged("parallel-one-bad").verdicts
    assert (verdict.turn, verdict.calls) == (1, (1,))


def test_a_repeat_without_a_result_waits_for_the_strict_rule() -> None:
    assert judged("result-order-by-id").verdicts == []


def test_a_reused_id_gives_the_second_result_to_the_second_call() -> None:
    results = pair_results(loaded("result-duplicate-ids").messages).results
    assert {site: failed(result) for site, result in results.items()} == {(1, 0): True, (3, 0): False}


def test_results_without_ids_pair_by_position_or_not_at_all() -> None:
    messages = loaded("result-missing-ids").messages
    pairing = pair_results(messages)
    assert {site: result.text for site, result in pairing.results.items()} == {(1, 0): "Error", (1, 1): "16"}
    assert pair_results(messages[:-1]).results == {}
    assert pair_results(messages[:-1]).unpaired == 1


def test_a_misplaced_required_is_suspect_not_enforced() -> None:
    judgement = judged("schema-required-misplaced")
    assert judgement.verdicts == []
    assert judgement.notes["suspect_schema"] == 1


def test_local_references_resolve_and_remote_ones_are_refused() -> None:
    conversation = loaded("schema-ref-defs")
    parameters = conversation.tools[0]["function"]["parameters"]
    assert compile_tools(conversation.tools)["report"].rejection({"period": {"kind": "year"}}).path == "/period/kind"
    parameters["properties"]["period"] = {"$ref": "https://example.org/p.json"}
    with pytest.raises(BrokenSchema):
        compile_tools(conversation.tools)["report"].rejection({"period": {"kind": "week"}})


def test_extra_arguments_follow_plain_json_schema_where_allowed() -> None:
    assert judged("schema-extra-property", allow_extra_arguments=True).verdicts == []


def test_text_in_a_text_argument_is_not_repaired() -> None:
    conversation = loaded("args-nested-json-string-field")
    assert conversation.messages[1].tool_calls[0].arguments == {"items": '["a", "b"]', "title": "{x}"}


def test_a_record_without_tools_is_undecidable_and_kept() -> None:
    judgement = judged("unknown-tool-no-tools-list")
    assert judgement.verdicts == []
    assert judgement.notes["undecidable_no_tools"] == 1


def test_a_repeat_after_the_user_spoke_is_counted_apart_and_forgiven_on_request() -> None:
    assert judged("repeat-after-user-turn").notes["masked_repeat_after_user_message"] == 1
    assert judged("repeat-after-user-turn", repeats="user-round").verdicts == []


def test_a_retry_that_succeeds_is_masked_by_the_strict_rule_only() -> None:
    assert [verdict.turn for verdict in judged("repeat-transient-error", repeats="strict").verdicts] == [3]
