"""The mask stage: what it writes on a record and what it counts."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import UsageError
from sft_toolkit.formats import parse_record
from sft_toolkit.json_text import encode
from sft_toolkit.stage import Outcome
from sft_toolkit.stages.mask import MaskStage

PAY = {"name": "pay", "parameters": {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}}


def record(*turns: dict[str, Any], tools: Any = (PAY,)) -> dict[str, Any]:
    return {"id": "r", "messages": [{"role": "user", "content": "pay"}, *turns], "tools": list(tools)}


def calling(name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    call = {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call], **more}


def masked(*records: dict[str, Any], **options: Any) -> tuple[list[Conversation], Outcome]:
    outcome = Outcome(quarantine=False)
    stage = MaskStage(**options)
    return list(stage.process([parse_record(given) for given in records], outcome)), outcome


def test_a_bad_turn_gets_weight_0_reason_and_detail_and_keeps_its_call() -> None:
    ((conversation,), outcome) = masked(record(calling("pay", {"sum": "5"}), calling("pay", {"sum": 5})))
    bad, good = conversation.to_record()["messages"][1:]
    assert bad == {
        **calling("pay", {"sum": "5"}),
        "weight": 0,
        "mask_reason": "invalid_arguments",
        "mask_detail": 'pay at /sum: "5" is not of type "number"',
    }
    assert good == calling("pay", {"sum": 5})
    assert outcome.counters.notes == {"tool_calls": 2, "masked_invalid_arguments": 1}


def test_a_weight_of_the_input_is_never_raised() -> None:
    ((conversation,), _) = masked(record(calling("pay", {"sum": 5}, weight=0), calling("nope", {}, weight=1)))
    assert [message.weight for message in conversation.messages[1:]] == [0, 0]
    assert conversation.messages[1].mask_reason is None


def test_masking_twice_changes_nothing_but_the_provenance() -> None:
    ((once,), _) = masked(record(calling("nope", {}), calling("pay", "[")))
    first = once.to_record()
    ((twice,), _) = masked(first)
    assert twice.to_record()["messages"] == first["messages"]
    assert [entry["stage"] for entry in twice.provenance] == ["mask", "mask"]


def test_every_undecided_thing_is_counted_by_name() -> None:
    broken = {"name": "pay", "parameters": {"properties": {"sum": 7}}}
    suspect = {"name": "pay", "parameters": {}, "required": ["sum"]}
    result = {"role": "tool", "content": "ok"}
    _, outcome = masked(
        record(calling("pay", {}), tools=[]),
        record(calling("pay", {}), tools=[broken]),
        record(calling("pay", {}), tools=[suspect]),
        record(calling("pay", {"sum": 1}), result, result),
        record(calling("pay", {"sum": 1, "more": 2}), result),
    )
    assert outcome.counters.notes == {
        "tool_calls": 5,
        "undecidable_no_tools": 1,
        "undecidable_broken_schema": 1,
        "suspect_schema": 1,
        "undecidable_unpaired_results": 2,
        "extra_arguments": 1,
    }


def test_records_without_calls_pass_as_they_are() -> None:
    given = {"id": "r", "messages": [{"role": "user", "content": "5"}, {"role": "assistant", "content": "6"}]}
    ((conversation,), outcome) = masked(given)
    assert conversation.to_record()["messages"] == given["messages"]
    assert outcome.counters.notes == {}


def test_a_bad_pattern_is_a_usage_error_before_any_work() -> None:
    with pytest.raises(UsageError, match="`unknown_tool_patterns`"):
        MaskStage(unknown_tool_patterns=("(",))


def test_the_stage_pickles_and_its_options_are_plain_json() -> None:
    stage = pickle.loads(pickle.dumps(MaskStage(failure_patterns=("Fehler",))))
    assert stage.options_hash == MaskStage(failure_patterns=("Fehler",)).options_hash != MaskStage().options_hash
    assert encode(stage.options()).startswith(b'{"repeats":"default","failure_patterns":["Fehler"]')
