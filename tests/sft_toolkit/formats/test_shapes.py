"""Shapes that are known alone, what must not stand beside them, and the advice of a refusal."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.sft_toolkit.formats.reading import ANSWER, USER, one, read, refusal, said
from tests.sft_toolkit.formats.schema_cases import cases

PAIR = {"prompt": "q", "response": "a"}
CALL_ITEM = {"type": "function_call", "call_id": "c", "id": "fc", "name": "f", "arguments": '{"a": 1}'}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"Prompt": "q", "Completion": "a", "System": "s"}, ["system: s", "user: q", "assistant: a"]),
        ({"messages": None, "prompt": "q", "completion": "a"}, ["user: q", "assistant: a"]),
        ({"prompt": [USER], "completion": "a"}, ["user: q", "assistant: a"]),
        ({"prompt": "q", "completion": [ANSWER]}, ["user: q", "assistant: a"]),
        ({"prompt": '[{"role": "user", "content": "q"}]', "completion": [ANSWER]}, ["user: q", "assistant: a"]),
        (
            {"prompt": [USER, ANSWER, USER], "completion": [ANSWER]},
            ["user: q", "assistant: a [0]", "user: q", "assistant: a"],
        ),
        ({"dialog": [USER, ANSWER], "problem": "p", "solution": "s"}, ["user: q", "assistant: a"]),
        (
            {"history": [["x", "y"]], "query": "q", "response": "r"},
            ["user: x", "assistant: y", "user: q", "assistant: r"],
        ),
        (
            {"history": [USER, ANSWER], "query": "p", "response": "r"},
            [*("user: q", "assistant: a"), "user: p", "assistant: r"],
        ),
        (
            {"conversation": [{"input": "q", "output": "a", "system": "S"}, {"input": "r", "output": "b"}]},
            ["system: S", "user: q", "assistant: a", "user: r", "assistant: b"],
        ),
        (
            {"conversation": [{"human": "q", "assistant": "a"}, {"human": "r", "assistant": None}]},
            ["user: q", "assistant: a", "user: r"],
        ),
        ({"conversations": ["a", "b", "c", "d"]}, ["user: a", "assistant: b", "user: c", "assistant: d"]),
        (
            {"messages": ['{"role": "user", "content": "q"}', '{"role": "assistant", "content": "a"}']},
            ["user: q", "assistant: a"],
        ),
        ({**PAIR, "Reasoning": "on"}, ["user: q", "assistant: a"]),
        ({**PAIR, "reasoning": "r", "reasoning_content": "r"}, ["user: q", "assistant: (r) a"]),
        ({**PAIR, "is_reasoning_complete": [True]}, ["user: q", "assistant: a"]),
        ({**PAIR, "finish_reason": "stop", "scottish": "text"}, ["user: q", "assistant: a"]),
        ({"question": "q", "answer": "a", "final_answer": "5", "gold_answer": "5"}, ["user: q", "assistant: a"]),
        (
            {
                "input": [USER, CALL_ITEM, {"type": "function_call_output", "call_id": "c", "output": "42"}],
                "output": [ANSWER],
            },
            ["user: q", 'assistant: ->f{"a": 1} [0]', "tool: 42", "assistant: a"],
        ),
        (
            {
                "input": [USER],
                "output": [
                    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "think"}]},
                    CALL_ITEM,
                ],
            },
            ["user: q", 'assistant: (think) ->f{"a": 1}'],
        ),
    ],
)
def test_a_shape_is_known_alone(record: dict[str, Any], expected: list[str]) -> None:
    assert said(one(record)) == expected


@pytest.mark.parametrize(
    ("record", "named"),
    [
        ({**PAIR, "cot": "long text"}, "--map user=prompt --map reasoning=cot --map assistant=response"),
        ({**PAIR, "LongCoT": "text"}, "--map reasoning=LongCoT"),
        ({**PAIR, "thoughts": ["text"]}, "--map reasoning=thoughts.0"),
        ({**PAIR, "reasoning": "r", "reasoning_content": "s"}, "--map reasoning=reasoning"),
        ({**PAIR, "context": "c"}, "--map user=context --map user=prompt --map assistant=response"),
        ({"instruction": "q", "context": "c", "output": "a"}, "--map user=instruction --map user=context"),
        ({"instruction": "q", "input": "i", "output": "a", "solution": "s"}, "--map user=instruction --map user=input"),
        ({"question": "q", "answer": "a", "answers": ["a", "b"]}, "--map user=question --map assistant=answer"),
        ({"question": "q", "answer": 5}, "--map user=question --map assistant=answer"),
        ({"context": [USER], "response": "a"}, "--map messages=context --map assistant=response"),
        ({"one": [USER, ANSWER], "two": [USER, ANSWER]}, "one and two"),
        ({"prompt": "q", "trace": [ANSWER]}, "prompt may be it"),
        (
            {"data": {"x": [{"who": "a", "said": "hi"}, {"who": "b", "said": "ho"}]}},
            "--map as-user=a --map as-assistant=b",
        ),
        (
            {"chat": {"turn_1": {"Human": "x", "MOSS": "y"}}},
            "--map user=chat.turn_1.Human --map assistant=chat.turn_1.MOSS",
        ),
        (
            {"prompt": {"text": "x", "replies": [{"text": "y"}]}},
            "--map user=prompt.text --map assistant=prompt.replies.0.text",
        ),
        ({"prompt": "q", "chosen": "a", "rejected": "b"}, "--map user=prompt --map assistant=chosen"),
        ({"input_ids": [1, 2], "labels": [1, 2]}, "input_ids"),
        ({"query": "q", "answers": "[]", "tools": "[]"}, "answers is an empty list"),
        ({"instruction": "q", "input": "", "output": ""}, "output is empty"),
    ],
)
def test_what_is_not_clear_is_refused_with_the_mapping_that_would_do(record: dict[str, Any], named: str) -> None:
    assert named in refusal(record)


ALONE = [case for case in cases() if "refuse" in case.get("alone", {}) and "records" in case["expect"]]


# These refusals offer a choice of single lines, of which the first is taken.
CHOICES = ("system-column-wins", "label-effort-unknown", "flag-half")


@pytest.mark.parametrize("case", ALONE, ids=[case["id"] for case in ALONE])
def test_the_advice_of_a_refusal_lets_the_record_in(case: dict[str, Any]) -> None:
    found = re.findall(r"--map (?:'([^']*)'|([^\s;]+))", refusal(case["input"][0]))
    lines = [quoted or bare for quoted, bare in found]
    assert read(case["input"][0], *(lines[:1] if case["id"] in CHOICES else lines))


def test_the_columns_of_a_refused_record_are_listed() -> None:
    record = {f"column_{number}": number for number in range(60)}
    assert re.search(r"columns: column_0, .*, column_39 and 20 more", refusal(record))
