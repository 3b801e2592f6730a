"""Reading records: every form that data sets use becomes one."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from sft_toolkit.errors import RecordError
from sft_toolkit.formats import parse_record
from sft_toolkit.json_text import decode, encode
from tests.conftest import CASES


def conversation(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "r1", "messages": list(messages), **more}


USER = {"role": "user", "content": "Was kostet das?"}


def call(arguments: Any, name: str = "buche_einnahme", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"function": {"name": name, "arguments": arguments}, **more}]}


def load_cases(kind: str) -> dict[str, dict[str, Any]]:
    lines = (CASES / "tool_and_mask_cases.jsonl").read_text().splitlines()
    return {case["id"]: case for case in map(json.loads, lines) if case["kind"].startswith(kind)}


def reason(record: Any, **more: Any) -> str:
    with pytest.raises(RecordError) as caught:
        parse_record(record, **more)
    return caught.value.reason


@pytest.mark.parametrize("arguments", ["", "  \n", None, "null", {}, "{}"])
def test_missing_arguments_mean_the_empty_object(arguments: Any) -> None:
    assert parse_record(conversation(USER, call(arguments))).messages[1].tool_calls[0].arguments == {}


def test_every_digit_of_a_number_survives_reading_and_writing() -> None:
    text = (
        b'{"id":"r","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":['
        b'{"type":"function","function":{"name":"f","arguments":{"a":2512292042121000001,"b":16.20}}}]}]}'
    )
    parsed = parse_record(decode(text))
    assert parsed.messages[1].tool_calls[0].arguments == {"a": 2512292042121000001, "b": Decimal("16.20")}
    assert encode(parsed.to_record()) == text


def test_digits_survive_in_arguments_given_as_text() -> None:
    parsed = parse_record(conversation(USER, call('{"betrag": 16.20}')))
    assert b'"arguments":{"betrag":16.20}' in encode(parsed.to_record())


def test_doubly_encoded_arguments_are_peeled_once_and_noted() -> None:
    parsed = parse_record(conversation(USER, call('"{\\"order_id\\": 77}"')))
    assert parsed.messages[1].tool_calls[0].arguments == {"order_id": 77}
    assert parsed.notes == ["double_encoded_arguments"]


def test_three_layers_of_encoding_are_not_an_object() -> None:
    layers = json.dumps(json.dumps(json.dumps({"a": 1})))
    call_read = parse_record(conversation(USER, call(layers))).messages[1].tool_calls[0]
    assert call_read.problem == "arguments is not an object but text"
    assert call_read.arguments == layers


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[5]", "arguments is not an object but a list"),
        ("5", "arguments is not an object but a number"),
        ("true", "arguments is not an object but a boolean"),
        ('{"a": 1, "a": 2}', "duplicate key a"),
        ('{"a": {"b": 1, "b": 1}}', "duplicate key b"),
        ('{"a": NaN}', "arguments is not JSON: NaN is not a JSON number"),
        ('{"a": ', "arguments is not JSON: Expecting value at character 6"),
    ],
)
def test_arguments_that_are_no_object_are_kept_as_written_with_the_problem(text: str, problem: str) -> None:
    call_read = parse_record(conversation(USER, call(text))).messages[1].tool_calls[0]
    assert (call_read.arguments, call_read.problem) == (text, problem)
    assert parse_record(parse_record(conversation(USER, call(text))).to_record()).to_record()["messages"][1][
        "tool_calls"
    ] == [{"type": "function", "function": {"name": "buche_einnahme", "arguments": text}}]


def test_deep_nesting_is_a_problem_of_the_call_not_a_crash() -> None:
    text = '{"a":' + "[" * 100_000 + "]" * 100_000 + "}"
    problem = parse_record(conversation(USER, call(text))).messages[1].tool_calls[0].problem
    assert problem == "arguments is not JSON: nested too deeply"


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content", "thinking"])
def test_reasoning_under_any_name_becomes_reasoning(field: str) -> None:
    answer = parse_record(conversation(USER, {"role": "assistant", "content": "b", field: "weil x"})).messages[1]
    assert (answer.reasoning, answer.content, answer.extra) == ("weil x", "b", {})


def test_reasoning_in_a_leading_think_block_is_taken_out_of_the_content() -> None:
    content = "<think>\nweil x\n</think>\n\nAlso 16,20 €."
    answer = parse_record(conversation(USER, {"role": "assistant", "content": content})).messages[1]
    assert (answer.reasoning, answer.content) == ("weil x", "Also 16,20 €.")


def test_a_think_tag_inside_the_answer_is_text() -> None:
    content = "Das Zeichen <think> öffnet den Block."
    answer = parse_record(conversation(USER, {"role": "assistant", "content": content})).messages[1]
    assert (answer.reasoning, answer.content) == (None, content)


def test_text_parts_beside_a_thinking_part_are_joined() -> None:
    parts = [{"type": "thinking", "thinking": "weil x"}, {"type": "text", "text": "b"}, {"type": "text", "text": " c"}]
    answer = parse_record(conversation(USER, {"role": "assistant", "content": parts})).messages[1]
    assert (answer.reasoning, answer.content) == ("weil x", "b c")


def test_a_think_block_in_text_parts_is_taken_out_of_the_joined_text() -> None:
    parts = [{"type": "text", "text": "<think>weil x</think>\n\nb"}, {"type": "text", "text": "<think>c"}]
    answer = parse_record(conversation(USER, {"role": "assistant", "content": parts})).messages[1]
    assert (answer.reasoning, answer.content) == ("weil x", "b<think>c")


def test_a_thinking_part_and_a_think_block_that_differ_are_an_error() -> None:
    parts = [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "<think>y</think>b"}]
    assert reason(conversation(USER, {"role": "assistant", "content": parts})) == "ambiguous_reasoning"


def test_two_fields_with_the_same_reasoning_are_one() -> None:
    message = {"role": "assistant", "content": "b", "reasoning": "weil x", "reasoning_content": "weil x\n"}
    assert parse_record(conversation(USER, message)).messages[1].reasoning == "weil x"


def test_two_fields_with_different_reasoning_are_an_error() -> None:
    message = {"role": "assistant", "content": "b", "reasoning": "x", "thinking": "y"}
    assert reason(conversation(USER, message)) == "ambiguous_reasoning"


def test_an_unclosed_think_block_is_an_error_of_the_record() -> None:
    assert reason(conversation(USER, {"role": "assistant", "content": "<think>weil"})) == "unclosed_think"


def test_a_users_think_tag_is_left_alone() -> None:
    asked = {"role": "user", "content": "<think>was ist das?"}
    assert parse_record(conversation(asked)).messages[0].content == "<think>was ist das?"


def test_legacy_function_calls_become_tool_calls() -> None:
    record = conversation(
        USER,
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a": 1}'}},
        {"role": "function", "name": "f", "content": "ok"},
        functions=[{"name": "f", "parameters": {"type": "object"}}],
    )
    parsed = parse_record(record)
    assert (parsed.messages[1].tool_calls[0].name, parsed.messages[1].tool_calls[0].arguments) == ("f", {"a": 1})
    assert (parsed.messages[2].role, parsed.messages[2].name) == ("tool", "f")
    assert parsed.tools == [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


def test_sharegpt_with_calls_observations_and_tools_as_text() -> None:
    record = {
        "conversations": [
            {"from": "human", "value": "Rechnung bitte"},
            {"from": "function_call", "value": '{"name": "rechnung", "arguments": {"netto": 1.50}}'},
            {"from": "observation", "value": '{"nr": 7}'},
            {"from": "gpt", "value": "Nummer 7."},
        ],
        "tools": '[{"name": "rechnung", "parameters": {"type": "object"}}]',
        "system": "Du hilfst.",
    }
    parsed = parse_record(record)
    assert [message.role for message in parsed.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert parsed.messages[2].tool_calls[0].arguments == {"netto": Decimal("1.50")}
    assert parsed.tools[0]["function"]["name"] == "rechnung"


def test_a_duplicate_key_in_a_sharegpt_call_is_seen() -> None:
    value = '{"name": "zahle", "arguments": {"betrag": 5, "betrag": 500}}'
    record = {"conversations": [{"from": "human", "value": "x"}, {"from": "function_call", "value": value}]}
    read = parse_record(record).messages[1].tool_calls[0]
    assert (read.problem, read.arguments) == ("duplicate key betrag", '{"betrag": 5, "betrag": 500}')


@pytest.mark.parametrize("arguments", ['{"a": 1}', '"{\\"a\\": 1}"'])
def test_sharegpt_arguments_may_be_an_object_or_text(arguments: str) -> None:
    value = f'[{{"name": "f", "arguments": {arguments}}}, {{"name": "g"}}]'
    record = {"conversations": [{"from": "human", "value": "x"}, {"from": "function_call", "value": value}]}
    calls = parse_record(record).messages[1].tool_calls
    assert [(call.name, call.arguments) for call in calls] == [("f", {"a": 1}), ("g", {})]


def test_alpaca_with_input_and_history() -> None:
    record = {
        "instruction": "Übersetze.",
        "input": "bread",
        "output": "Brot",
        "history": [["Hallo", "Guten Tag"]],
        "source": "x",
    }
    parsed = parse_record(record)
    assert [message.content for message in parsed.messages] == ["Hallo", "Guten Tag", "Übersetze.\n\nbread", "Brot"]
    assert parsed.extra == {"source": "x"}


def test_unknown_keys_survive_at_every_level() -> None:
    record = conversation(
        {"role": "user", "content": "x", "mood": "good"},
        {**call({"a": 1}, index=3, id="c1"), "finish_reason": "stop"},
        {"role": "tool", "tool_call_id": "c1", "content": "ok", "is_error": False},
        reward=Decimal("0.50"),
        tags=["a", None],
    )
    written = parse_record(record).to_record()
    assert written["reward"] == Decimal("0.50") and written["tags"] == ["a", None]
    assert written["messages"][0]["mood"] == "good"
    assert written["messages"][1]["finish_reason"] == "stop"
    assert written["messages"][1]["tool_calls"][0]["index"] == 3
    assert written["messages"][2]["is_error"] is False
    assert parse_record(written).to_record() == written


def test_unknown_keys_of_a_calls_function_survive() -> None:
    function = {"name": "f", "arguments": {"a": 1}, "strict": True}
    message = {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": function}]}
    assert parse_record(conversation(USER, message)).to_record()["messages"][1] == message


def test_a_call_and_its_result_keep_an_id_that_is_a_number() -> None:
    record = conversation(USER, call({}, id=7), {"role": "tool", "tool_call_id": 7, "content": "x"})
    parsed = parse_record(record)
    assert (parsed.messages[1].tool_calls[0].id, parsed.messages[2].tool_call_id) == ("7", "7")
    record["messages"][2]["tool_call_id"] = 8
    assert reason(record) == "tool_result_without_call"


def test_a_missing_id_is_a_hash_of_the_content_alone() -> None:
    first = parse_record({"messages": [USER], "dataset": "a"})
    second = parse_record({"dataset": "b", "messages": [dict(USER)]})
    other = parse_record({"messages": [{"role": "user", "content": "anders"}]})
    assert first.id == second.id != other.id
    assert len(first.id) == 32


def test_an_integer_id_becomes_text() -> None:
    assert parse_record({"id": 7, "messages": [USER]}).id == "7"


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ([1], "not_an_object"),
        ({"id": "x"}, "no_messages"),
        ({"messages": "hi"}, "bad_messages"),
        ({"messages": "[" * 100_000}, "bad_messages"),
        ({"messages": []}, "empty_conversation"),
        ({"messages": ["hi"]}, "bad_messages"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "unknown_role"),
        ({"messages": [{"role": "user", "content": 5}]}, "bad_content"),
        ({"messages": [USER, {"role": "tool", "content": "x"}]}, "tool_result_without_call"),
        ({"messages": [USER, {"role": "assistant", "weight": 2, "content": ""}]}, "bad_weight"),
        ({"messages": [USER], "tools": "nope"}, "bad_tools"),
        ({"messages": [USER], "effort": "extreme"}, "bad_effort"),
        ({"messages": [USER], "id": [1]}, "bad_id"),
        ({"conversations": [{"from": "wizard", "value": "x"}]}, "unknown_role"),
        ({"conversations": [{"from": "function_call", "value": "{"}]}, "unreadable_call"),
        ({"conversations": [{"from": ["human"], "value": "x"}]}, "unknown_role"),
        ({"conversations": [{"value": "x"}]}, "unknown_role"),
        ({"instruction": "x", "output": "y", "history": ["z"]}, "bad_messages"),
        ({"instruction": "x", "output": "y", "history": 3}, "bad_messages"),
        ({"instruction": "x", "output": "y", "input": 5}, "bad_content"),
        ({"instruction": "x", "output": "y", "input": ["a"]}, "bad_content"),
    ],
)
def test_what_is_no_conversation_is_refused_with_its_reason(record: Any, expected: str) -> None:
    assert reason(record) == expected


def test_a_result_whose_id_names_no_earlier_call_is_an_error() -> None:
    result = {"role": "tool", "tool_call_id": "c2", "content": "x"}
    assert reason(conversation(USER, call({}, id="c1"), result)) == "tool_result_without_call"


@pytest.mark.parametrize(("depth", "expected"), [(800, "nested_too_deeply"), (100_000, "bad_tools")])
def test_a_schema_nested_too_deeply_is_an_error_of_the_record(depth: int, expected: str) -> None:
    """What even the decoder cannot follow is reported as text that is not JSON."""
    tools = [{"name": "f", "parameters": '{"a":' * depth + "{}" + "}" * depth}]
    assert reason(conversation(USER, tools=tools)) == expected


def test_the_format_can_be_pinned() -> None:
    assert reason({"messages": [USER]}, source_format="sharegpt") == "wrong_format"


@pytest.mark.parametrize("name", ["input_schema", "inputSchema"])
def test_the_schema_of_other_vendors_tools_is_that_of_the_parameters(name: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    tool = {"name": "f", "description": "does f", name: schema}
    ours = {"name": "f", "description": "does f", "parameters": schema}
    assert parse_record(conversation(USER, tools=[tool])).tools == [{"type": "function", "function": ours}]
    both = {**ours, name: {"type": "object"}}
    assert parse_record(conversation(USER, tools=[both])).tools == [{"type": "function", "function": both}]


def test_tools_in_all_four_forms_are_one() -> None:
    case = load_cases("load.tools")["schema-tools-as-string"]["input"]
    flat = json.loads(case["tools_string"])
    wrapped = [{"type": "function", "function": tool} for tool in flat]
    text_parameters = [{**tool, "parameters": json.dumps(tool["parameters"])} for tool in flat]
    forms = [case["tools_string"], flat, wrapped, text_parameters, json.dumps(wrapped)]
    assert all(parse_record(conversation(USER, tools=form)).tools == wrapped for form in forms)


def test_nulls_that_column_storage_padded_are_dropped_and_meant_nulls_kept() -> None:
    case = load_cases("load.tools")["schema-arrow-null-padding"]["input"]
    assert [tool["function"] for tool in parse_record(case).tools] == [
        {
            "name": "a",
            "parameters": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]},
        },
        {
            "name": "b",
            "parameters": {"type": "object", "properties": {"y": {"type": "integer", "default": None}}},
        },
    ]


def test_null_inside_enum_and_const_is_a_value() -> None:
    schema = {"type": "object", "properties": {"unit": {"enum": ["g", None]}, "x": {"const": None}}}
    tools = [{"name": "f", "parameters": schema}]
    assert parse_record(conversation(USER, tools=tools)).tools[0]["function"]["parameters"] == schema


def test_a_property_named_default_is_a_property() -> None:
    schema = {"type": "object", "properties": {"default": None, "x": {"type": "string"}}}
    tools = [{"name": "f", "parameters": schema}]
    cleaned = parse_record(conversation(USER, tools=tools)).tools[0]["function"]["parameters"]
    assert cleaned["properties"] == {"x": {"type": "string"}}


def test_exchanges_begin_with_each_user_turn() -> None:
    roles = ["system", "user", "user", "assistant", "user", "assistant"]
    parsed = parse_record(conversation(*({"role": role, "content": "x"} for role in roles)))
    assert parsed.exchanges() == [range(1, 4), range(4, 6)]


def test_what_stands_before_the_first_user_turn_is_no_exchange() -> None:
    parsed = parse_record(conversation({"role": "assistant", "content": "Willkommen"}, USER))
    assert parsed.exchanges() == [range(1, 2)]
