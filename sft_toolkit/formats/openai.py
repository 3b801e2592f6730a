"""OpenAI chat messages, with the legacy `function_call` form, to `Conversation`."""

from __future__ import annotations

from typing import Any

import xxhash

from sft_toolkit.conversation import ROLES, Conversation, Message, ToolCall
from sft_toolkit.errors import RecordError
from sft_toolkit.formats.reasoning import FIELDS, split_reasoning
from sft_toolkit.formats.tools import normalise_tools
from sft_toolkit.json_text import encode, encode_text
from sft_toolkit.tool_calls.decode import decode_arguments

_RECORD_KEYS = frozenset(
    {"id", "dataset", "domain", "difficulty", "effort", "messages", "tools", "functions", "provenance"}
)
_MESSAGE_KEYS = frozenset(
    {"role", "content", "tool_calls", "function_call", "tool_call_id", "name", "weight"}
    | {"mask_reason", "mask_detail", "effort", *FIELDS}
)
_FUNCTION_KEYS = frozenset({"name", "arguments"})
_CALL_KEYS = frozenset({"id", "type", "function", *_FUNCTION_KEYS})
EFFORTS = ("none", "low", "medium", "high")


def parse(record: dict[str, Any]) -> Conversation:
    """Read one record. Raises RecordError naming the message that cannot be read."""
    given = record.get("messages")
    if not isinstance(given, list):
        raise RecordError("bad_messages", "messages is not a list")
    if not given:
        raise RecordError("empty_conversation", "messages is empty")
    notes: list[str] = []
    messages = [_parse_message(index, message, notes) for index, message in enumerate(given)]
    _check_results(messages)
    tools = normalise_tools(record["tools"] if record.get("tools") is not None else record.get("functions"))
    return Conversation(
        id=_identifier(record, messages, tools),
        messages=messages,
        tools=tools,
        dataset=_label(record, "dataset"),
        domain=_label(record, "domain"),
        difficulty=_label(record, "difficulty"),
        effort=_effort(record, "the record"),
        provenance=_provenance(record),
        extra={key: value for key, value in record.items() if key not in _RECORD_KEYS},
        notes=notes,
    )


def _parse_message(index: int, given: Any, notes: list[str]) -> Message:
    if not isinstance(given, dict):
        raise RecordError("bad_messages", f"message {index} is not an object")
    role = given.get("role")
    if role == "function":
        role = "tool"
    if role not in ROLES:
        raise RecordError("unknown_role", f"message {index} has role {role!r}", f"known roles: {', '.join(ROLES)}")
    reasoning, content = split_reasoning(given) if role == "assistant" else (None, given.get("content"))
    own_fields = FIELDS if role == "assistant" else ()
    return Message(
        role=role,
        content=_content(index, role, content),
        reasoning=reasoning,
        tool_calls=_tool_calls(index, given, notes),
        tool_call_id=_call_id(given.get("tool_call_id")),
        name=_text_or_none(given.get("name")),
        weight=_weight(index, given.get("weight")),
        mask_reason=given.get("mask_reason"),
        mask_detail=given.get("mask_detail"),
        effort=_effort(given, f"message {index}"),
        extra={
            key: value
            for key, value in given.items()
            if key not in _MESSAGE_KEYS or (key in FIELDS and key not in own_fields and value is not None)
        },
    )


def _content(index: int, role: str, content: Any) -> str | list[dict[str, Any]] | None:
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict) and "type" in part for part in content):
        return content
    if role == "tool":
        return encode_text(content)
    raise RecordError("bad_content", f"the content of message {index} is neither text, null nor a list of parts")


def _tool_calls(index: int, given: dict[str, Any], notes: list[str]) -> list[ToolCall]:
    calls = given.get("tool_calls") or []
    if not isinstance(calls, list):
        raise RecordError("bad_tool_calls", f"tool_calls of message {index} is not a list")
    legacy = given.get("function_call")
    if isinstance(legacy, dict):
        calls = [*calls, legacy]
    if calls and given.get("role") != "assistant":
        raise RecordError("bad_tool_calls", f"message {index} has tool calls but role {given.get('role')!r}")
    return [_tool_call(index, call, notes) for call in calls]


def _tool_call(index: int, given: Any, notes: list[str]) -> ToolCall:
    function = given.get("function", given) if isinstance(given, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise RecordError("bad_tool_calls", f"a tool call of message {index} has no name")
    arguments = decode_arguments(function.get("arguments"))
    if arguments.double_encoded:
        notes.append("double_encoded_arguments")
    return ToolCall(
        name=function["name"],
        arguments=arguments.value,
        id=_call_id(given.get("id")),
        problem=arguments.problem,
        extra={key: value for key, value in given.items() if key not in _CALL_KEYS and value is not None},
        function_extra={} if function is given else _unknown_function_keys(function),
    )


def _unknown_function_keys(function: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in function.items() if key not in _FUNCTION_KEYS and value is not None}


def _check_results(messages: list[Message]) -> None:
    """A tool result must follow a call; where every call so far has an id, it must name one of them."""
    seen: set[str | None] = set()
    for index, message in enumerate(messages):
        seen.update(call.id for call in message.tool_calls)
        if message.role != "tool":
            continue
        unmatched = message.tool_call_id is not None and None not in seen and message.tool_call_id not in seen
        if not seen or unmatched:
            raise RecordError("tool_result_without_call", f"message {index} is a tool result that follows no such call")


def _identifier(record: dict[str, Any], messages: list[Message], tools: list[dict[str, Any]]) -> str:
    given = record.get("id")
    if given is None or given == "":
        content = encode([[message.to_record() for message in messages], tools])
        return xxhash.xxh3_128_hexdigest(content)
    if isinstance(given, str):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    raise RecordError("bad_id", f"id is neither text nor an integer: {given!r}")


def _provenance(record: dict[str, Any]) -> list[dict[str, Any]]:
    given = record.get("provenance")
    if given is None:
        return []
    if not isinstance(given, list):
        raise RecordError("bad_provenance", "provenance is not a list")
    return list(given)


def _label(record: dict[str, Any], key: str) -> str | None:
    given = record.get(key)
    if given is None or isinstance(given, str):
        return given
    raise RecordError(f"bad_{key}", f"{key} is not text: {given!r}")


def _effort(given: dict[str, Any], where: str) -> str | None:
    effort = given.get("effort")
    if effort is None or effort in EFFORTS:
        return effort
    raise RecordError("bad_effort", f"{where} has effort {effort!r}", f"known efforts: {', '.join(EFFORTS)}")


def _weight(index: int, given: Any) -> int | None:
    if given is None:
        return None
    if given in (0, 1):
        return int(given)
    raise RecordError("bad_weight", f"message {index} has weight {given}", "a weight is 0 or 1")


def _call_id(given: Any) -> str | None:
    """The id that pairs a call with its result. A number names it as well as text does."""
    is_number = isinstance(given, int) and not isinstance(given, bool)
    return str(given) if is_number else _text_or_none(given)


def _text_or_none(given: Any) -> str | None:
    return given if isinstance(given, str) and given else None
