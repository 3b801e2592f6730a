"""The record cases on reading: each kind is read as its line says, or refused with what to do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import CASES
from tests.sft_toolkit.formats.reading import one, refusal, said

LINES = (CASES / "record_cases.jsonl").read_text().splitlines()
INPUTS = {case["id"]: case["input"] for case in map(json.loads, LINES)}
BONN = "user: Weather in Bonn?"
WEATHER = '->get_weather{"city": "Bonn"}'


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "args-key-langchain",
            [BONN, f"assistant: {WEATHER}", "tool: 12", "assistant: 12 degrees."],
        ),
        ("args-key-parameters", [BONN, f"assistant: {WEATHER}"]),
        ("system-key-with-messages", ["system: Answer in German only.", "user: Hi", "assistant: Hallo"]),
        ("loss-false-message", ["user: q1", "assistant: bad [0]", "user: q2", "assistant: good"]),
        ("hermes-single-turn-tokens", [BONN, f"assistant: {WEATHER}"]),
        ("ms-swift-roles", [BONN, f"assistant: {WEATHER}", "tool: 12", "assistant: 12 degrees."]),
        ("messages-as-json-text", ["user: q", "assistant: a"]),
        ("parquet-empty-tools", ["user: q", "assistant: a"]),
        ("tools-list-of-json-text", ["user: q", "assistant: a"]),
        ("tool-calls-as-json-text", ["user: q", 'assistant: ->get_weather{"city": "B"}']),
        ("difficulty-number", ["user: 1+1?", "assistant: (add) 2"]),
        ("closing-think-only", ["user: 1+1?", "assistant: (One and one is two.) 2"]),
        ("mistral-thinking-parts", ["user: 1+1?", "assistant: (add) 2"]),
        ("responses-text-parts", ["user: hi", "assistant: hello"]),
        ("prompt-completion", ["user: q", "assistant: a"]),
    ],
)
def test_a_record_case_is_read(name: str, expected: list[str]) -> None:
    assert said(one(INPUTS[name])) == expected


def test_the_calls_and_results_of_hermes_and_of_anthropic_are_taken_apart() -> None:
    assert said(one(INPUTS["hermes-multi-turn"]))[1:] == [
        BONN,
        f"assistant: {WEATHER}",
        'tool: {"t": 12}',
        "assistant: 12 degrees.",
    ]
    assert said(one(INPUTS["anthropic-blocks"]))[1:] == [
        BONN,
        'assistant: I look.->no_such_tool{"city": "Bonn"}',
        "tool: Error: no such tool",
        "assistant: Sorry.",
    ]


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("toolace-text-calls", "--map tools=COLUMN"),
        ("weight-text", 'message 1 has weight "0", which is text'),
        ("json-array-one-line", "jq -c '.[]'"),
    ],
)
def test_a_record_case_is_refused_with_what_to_do(name: str, named: str) -> None:
    given = json.loads(INPUTS[name]) if isinstance(INPUTS[name], str) else INPUTS[name]
    assert named in refusal(given)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("conversation", ["user: Q", "assistant: A"]),
        ("from_content", ["user: Q", "assistant: A"]),
        ("messages_from", ["user: Q", "assistant: A"]),
        ("role_content", ["user: Q", "assistant: A"]),
        ("role_value", ["user: Q", "assistant: A"]),
        ("alp_empty", "output is empty"),
        ("msg_nocontent", "message 1 (assistant) has neither text nor reasoning nor a call"),
        ("msg_text", "--map content=text reads its text there"),
        ("sharegptnoval", "message 0 has no text"),
        ("toolsdict", "tools is an object whose a is 1, no declaration"),
    ],
)
def test_a_file_as_people_pass_it_is_read_or_says_what_is_missing(file: str, expected: Any) -> None:
    record = json.loads((CASES / "command_line" / f"{file}.jsonl").read_text())
    if isinstance(expected, list):
        assert said(one(record)) == expected
    else:
        assert expected in refusal(record)
