"""Messages as APIs and trainers write them: parts, calls, results, loss flags, unread keys; labels beside them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sft_toolkit.formats.reading import ANSWER, USER, one, refusal, said

CALL = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}
CALLED = "assistant: ->f{}"


def conversation(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"messages": list(messages), **more}


def parts(*content: Any, role: str = "assistant", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": list(content), **more}


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([parts("x", {"type": "text", "text": "y"}, role="user"), ANSWER], ["user: xy", "assistant: a"]),
        (
            [USER, parts({"type": "reasoning", "text": "r"}, {"type": "text", "text": "y"})],
            ["user: q", "assistant: (r) y"],
        ),
        ([USER, parts({"text": "r", "thought": True}, {"text": "y"})], ["user: q", "assistant: (r) y"]),
        (
            [USER, parts({"reasoningContent": {"reasoningText": {"text": "r"}}}, {"text": "y"})],
            ["user: q", "assistant: (r) y"],
        ),
        (
            [
                USER,
                parts({"type": "tool_use", "id": "1", "name": "f", "input": {}}),
                parts(
                    {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "r"}]},
                    {"type": "text", "text": "and?"},
                    role="user",
                ),
                ANSWER,
            ],
            ["user: q", CALLED, "tool: r", "user: and?", "assistant: a"],
        ),
        (
            [
                USER,
                parts({"toolUse": {"toolUseId": "1", "name": "f", "input": {}}}),
                parts({"toolResult": {"toolUseId": "1", "content": [{"json": {"t": 1}}]}}, role="user"),
                ANSWER,
            ],
            ["user: q", CALLED, 'tool: {"t":1}', "assistant: a"],
        ),
        (
            [
                USER,
                {"role": "model", "parts": [{"functionCall": {"id": "1", "name": "f", "args": {}}}]},
                {"role": "function", "parts": [{"functionResponse": {"id": "1", "name": "f", "response": {"r": 1}}}]},
                ANSWER,
            ],
            ["user: q", CALLED, 'tool: {"r":1}', "assistant: a"],
        ),
        (
            [USER, CALL, {"role": "tool", "content": {"a": 1}}, ANSWER],
            ["user: q", CALLED, 'tool: {"a":1}', "assistant: a"],
        ),
        (
            [USER, CALL, {"role": "tool", "content": [{"name": "x"}]}, ANSWER],
            ["user: q", CALLED, 'tool: [{"name":"x"}]', "assistant: a"],
        ),
        (
            [
                USER,
                CALL,
                {"role": "tool", "content": "<tool_response>x</tool_response>\n<tool_response>y</tool_response>"},
            ],
            ["user: q", CALLED, "tool: x", "tool: y"],
        ),
        (
            [USER, {"role": "assistant", "tool_calls": {"name": "f", "args": {"a": 1}}}],
            ["user: q", 'assistant: ->f{"a": 1}'],
        ),
        ([USER, {"role": "assistant", "tool_calls": [{"function": "f", "arguments": "{}"}]}], ["user: q", CALLED]),
        (
            [USER, {"role": "tool_call", "content": "[{'name': 'f', 'arguments': {'a': 1}}]"}],
            ["user: q", 'assistant: ->f{"a": 1}'],
        ),
        (
            [USER, {**ANSWER, "loss": True}, {"role": "function-call", "content": {"name": "f"}, "loss": False}],
            ["user: q", "assistant: a->f{} [0]"],
        ),
        ([USER, ANSWER, {"role": "assistant", "content": ""}], ["user: q", "assistant: a"]),
        ([USER, {"role": "assistant", "content": "", "weight": 0}], ["user: q", "assistant:  [0]"]),
        ([{"role": "system", "content": None, "functions": "[]"}, USER, ANSWER], ["user: q", "assistant: a"]),
        ([USER, {**ANSWER, "masked": True}], ["user: q", "assistant: a [0]"]),
        ([USER, {**ANSWER, "loss": None, "train": 1.0}], ["user: q", "assistant: a"]),
        (
            [USER, parts({"type": "text", "text": "x", "train": False}, {"type": "text", "text": "y", "train": 0})],
            ["user: q", "assistant: xy [0]"],
        ),
    ],
)
def test_a_message_of_any_form_is_read(messages: list[dict[str, Any]], expected: list[str]) -> None:
    assert said(one(conversation(*messages))) == expected


@pytest.mark.parametrize(
    ("messages", "named"),
    [
        ([parts({"text": "y"}, {"image": "p.jpg"}, role="user"), ANSWER], "message 0 has a part of type image"),
        ([parts({"type": "video"}, role="user"), ANSWER], "message 0 has a part of type video"),
        ([{**USER, "images": ["x"]}, ANSWER], "message 0 has images"),
        ([parts({"type": "weird", "text": "x"}, role="user"), ANSWER], 'message 0 has a part of type "weird"'),
        ([parts({"type": "thinking", "thinking": "x"}, role="user"), ANSWER], "only the assistant thinks"),
        (
            [USER, parts({"type": "tool_use", "id": "1", "name": "f", "input": {}}, {"type": "text", "text": "late"})],
            "message 1 has text after a call",
        ),
        (
            [USER, parts({"type": "text", "text": "x", "train": False}, {"type": "text", "text": "y"})],
            "message 1 has parts whose loss flags (train) differ",
        ),
        ([USER, {"role": "assistant", "tool_calls": [{"name": "f", "args": {}, "input": {"b": 1}}]}], "args and input"),
        ([USER, {"role": "assistant", "tool_calls": "nope"}], "message 1 has tool_calls that is text and no JSON"),
        ([{**USER, "tool_calls": [{"name": "f"}]}, ANSWER], "message 0 has tool calls but is from user"),
        ([USER, {"role": "tool_call", "content": "nonsense"}], 'message 1 is to hold a call and holds "nonsense"'),
        (
            [USER, {"role": "assistant", "content": " \n"}],
            "message 1 (assistant) has neither text nor reasoning nor a call",
        ),
        ([USER, {"role": "assistant", "text": "A"}], "--map content=text"),
        ([USER, ANSWER, {"role": "assistant", "content": "", "note": "words"}], "message 2 (assistant) has neither"),
        ([{"role": "user"}, ANSWER], "message 0 has no text"),
        ([USER, CALL, {"role": "tool", "output": "words"}], "--map content=output"),
        ([{"speaker": "x", "content": "q"}, ANSWER], "message 0 does not say who speaks (its keys: speaker, content)"),
        ([USER, {**ANSWER, "weight": "0"}], 'message 1 has weight "0", which is text'),
        ([USER, {**ANSWER, "loss_scale": 2}], "message 1 has loss_scale 2; a loss flag is 0 or 1"),
        ([USER, {**ANSWER, "effort": "max"}], 'message 1 has effort "max"'),
        ([USER, {"role": "tool", "content": "x"}, ANSWER], "--map tools=COLUMN"),
    ],
)
def test_a_message_that_cannot_be_read_is_named(messages: list[dict[str, Any]], named: str) -> None:
    assert named in refusal(conversation(*messages))


@pytest.mark.parametrize(
    ("message", "notes"),
    [
        ({**ANSWER, "language": "de", "id": "x"}, ["unread_text: language"]),
        ({**ANSWER, "info": {"deep": ["text"]}, "score": 3}, ["unread_text: info"]),
        ({**ANSWER, "source_text": "counted before", "verify": {"a": "b"}}, []),
        ({**USER, "train": True, "loss": False}, ["loss_flag_without_effect"]),
        (parts({"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "y"}), ["reasoning_encrypted"]),
    ],
)
def test_what_is_not_read_is_counted_and_survives(message: dict[str, Any], notes: list[str]) -> None:
    read = one(conversation(USER, message))
    assert read.notes == notes
    assert one(read.to_record()).to_record() == read.to_record()


def test_flags_of_a_result_and_what_parts_hold_besides_stay_with_the_message() -> None:
    result = {"type": "tool_result", "tool_use_id": "1", "content": "r", "is_error": True}
    answer = parts({"type": "text", "text": "y", "citations": [{"url": "u"}]})
    read = one(conversation(USER, CALL, parts(result, role="user"), answer))
    assert (read.messages[2].tool_call_id, read.messages[2].extra) == ("1", {"is_error": True})
    assert read.messages[3].extra == {"source_parts": [{"citations": [{"url": "u"}]}]}


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"loss_mask": [0, 0, 0, 1]}, [0, None]),
        ({"loss_mask": [0, 1]}, [0, None]),
        ({"masked": [True, False]}, [0, None]),
        ({"loss": 0.7, "train": False}, [None, None]),
    ],
)
def test_a_list_of_flags_beside_messages_is_for_each_message_or_each_answer(
    flags: dict[str, Any], expected: list[Any]
) -> None:
    read = one(conversation(USER, ANSWER, USER, ANSWER, **flags))
    assert [message.weight for message in read.messages if message.role == "assistant"] == expected
    assert "3 flags for 4 messages" in refusal(conversation(USER, ANSWER, USER, ANSWER, loss_mask=[1, 1, 1]))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"id": 7.0, "domain": 3, "difficulty": 5.50}, {"id": "7.0", "domain": "3", "difficulty": "5.5"}),
        ({"id": {"$oid": "abc"}, "domain": True, "difficulty": ""}, {"id": "abc", "domain": "true"}),
        ({"Id": "x", "Dataset": "d", "effort": ""}, {"id": "x", "dataset": "d"}),
        ({"id": "x", "provenance": "web"}, {"id": "x", "source_provenance": "web"}),
        ({"id": "x", "provenance": []}, {"id": "x"}),
    ],
)
def test_labels_are_text(labels: dict[str, Any], expected: dict[str, Any]) -> None:
    written = one(conversation(USER, ANSWER, **labels)).to_record()
    assert {key: value for key, value in written.items() if key != "messages"} == expected


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        ({"id": True}, "id is neither text nor a number but true"),
        ({"id": ["a"]}, "--map id=id.0 takes its first, --map id= leaves it unread"),
        ({"domain": {"a": 1}}, "--map domain="),
        ({"effort": "High"}, "--map effort="),
        ({"effort": 0.5}, "effort 0.5"),
    ],
)
def test_a_label_of_another_kind_is_refused_without_the_words_of_python(labels: dict[str, Any], named: str) -> None:
    message = refusal(conversation(USER, ANSWER, **labels))
    assert named in message and "Decimal" not in message


@pytest.mark.parametrize(
    "tools",
    [
        {"f": {"description": "d"}},
        [{"function": {"name": "f", "description": "d"}}],
        '{"name": "f", "description": "d"}',
        ['{"name": "f", "description": "d"}'],
        {"functionDeclarations": [{"name": "f", "description": "d"}]},
        [{"toolSpec": {"name": "f", "description": "d"}}],
        '{"name": "f",\n "description": "d"}\n\n',
    ],
)
def test_tools_in_any_form_are_one(tools: Any) -> None:
    declared = [{"type": "function", "function": {"name": "f", "description": "d"}}]
    assert one(conversation(USER, ANSWER, tools=tools)).tools == declared
    assert one(conversation(USER, ANSWER, functions=[], metadata={"tools": tools})).tools == declared


@pytest.mark.parametrize("tools", [{"a": 1}, "see the manual", ["grep"], [{"description": "x"}], 5])
def test_tools_that_cannot_be_read_are_refused_with_the_line_that_leaves_them_unread(tools: Any) -> None:
    assert "--map tools=" in refusal(conversation(USER, ANSWER, tools=tools))
