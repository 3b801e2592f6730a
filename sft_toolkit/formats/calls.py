"""Calls as APIs and data sets hold them: an object with a name and arguments, or text that holds such objects."""

from __future__ import annotations

from typing import Any

import msgspec

from sft_toolkit.conversation import ToolCall
from sft_toolkit.errors import RecordError
from sft_toolkit.formats.dialects import read_call_text
from sft_toolkit.formats.refusals import shown
from sft_toolkit.json_text import decode
from sft_toolkit.tool_calls.decode import decode_arguments

_ARGUMENTS = "arguments"
_OTHER_ARGUMENTS = ("args", "input", "parameters")
"""LangChain's, Anthropic's and Llama's words for arguments."""
_IDS = ("call_id", "toolUseId", "tool_use_id", "id")
"""The first of them pairs a call with its result; the id of an item in the Responses API does not."""
_TYPES = (None, "function", "tool_call", "tool_use", "function_call", "custom", "custom_tool_call")
_SIGNS_OF_CALLS = ("{", "[", "(", "<")
_CALL_KEYS = frozenset({"type", "function", "name", *_IDS})


def call_list(given: Any, what: str) -> list[Any]:
    """The calls under a key of a message: a list, one object, or JSON text of these; empty ones are none."""
    if isinstance(given, str):
        return _written(given, what)
    if isinstance(given, dict):
        given = [given] if given else None
    if given is None:
        return []
    if not isinstance(given, list):
        raise RecordError("bad_tool_calls", f"has {what} that is neither a list nor JSON text of a list")
    return given


def _written(text: str, what: str) -> list[Any]:
    try:
        return call_list(decode(text) if text.strip() else None, what)
    except ValueError as fault:
        raise RecordError("bad_tool_calls", f"has {what} that is text and no JSON: {fault}") from fault


def read_call(given: Any, notes: list[str]) -> ToolCall:
    """One call: name and arguments at its top, or inside `function`. Raises RecordError where it has no name."""
    if not isinstance(given, dict):
        raise RecordError("bad_tool_calls", "has a tool call that is not an object")
    function = given.get("function")
    inner = function if isinstance(function, dict) else given
    name = function if isinstance(function, str) and "name" not in given else inner.get("name")
    if not isinstance(name, str) or not name:
        raise RecordError("bad_tool_calls", "has a tool call without a name")
    holder, key = _arguments_of(inner, given)
    arguments = decode_arguments(None if key is None else holder[key])
    if arguments.double_encoded:
        notes.append("double_encoded_arguments")
    used = _CALL_KEYS if key is None else {*_CALL_KEYS, _ARGUMENTS, key}
    extra = {other: value for other, value in given.items() if other not in used and value is not None}
    identity = call_id(given)
    if given.get("id") is not None and identifier(given["id"]) != identity:
        extra["source_id"] = given["id"]
    if given.get("type") not in _TYPES:
        extra["source_type"] = given["type"]
    return ToolCall(
        name=name,
        arguments=arguments.value,
        id=identity,
        problem=arguments.problem,
        extra=extra,
        function_extra={} if inner is given else _others(inner, {"name", _ARGUMENTS, key}),
    )


def _others(function: dict[str, Any], used: set[str | None]) -> dict[str, Any]:
    return {key: value for key, value in function.items() if key not in used and value is not None}


def _arguments_of(inner: dict[str, Any], outer: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Where the arguments stand: the object and its key, None where there are none."""
    for holder in (inner, outer) if inner is not outer else (inner,):
        if holder.get(_ARGUMENTS) is not None:
            return holder, _ARGUMENTS
        others = [key for key in _OTHER_ARGUMENTS if holder.get(key) is not None]
        if len(others) > 1:
            raise RecordError(
                "bad_tool_calls",
                f"has a tool call whose arguments stand under {' and '.join(others)}",
                "keep one of them",
            )
        if others:
            return holder, others[0]
    return inner, None


def call_id(given: dict[str, Any]) -> str | None:
    """The id that pairs a call with its result, under the names that APIs give it."""
    return next((identity for key in _IDS if (identity := identifier(given.get(key))) is not None), None)


def identifier(given: Any) -> str | None:
    """An id as text. A number names a call as well as text does."""
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    return given if isinstance(given, str) and given else None


def calls_of_message(value: Any, notes: list[str]) -> list[ToolCall]:
    """The calls of a message that is nothing else: an object, a list, or text that holds them."""
    if isinstance(value, str):
        raw = _raw_calls(value)
        if raw is None:
            return written_calls(value)
        value = raw
    calls = value if isinstance(value, list) else [value]
    if not calls:
        raise RecordError("bad_tool_calls", "is to hold a call and holds none")
    return [read_call(call, notes) for call in calls]


def written_calls(text: str) -> list[ToolCall]:
    """The calls of a text in any dialect. A bare word is no call here, though a mark may make it one elsewhere."""
    if not any(sign in text for sign in _SIGNS_OF_CALLS):
        raise RecordError("bad_tool_calls", f"is to hold a call and holds {shown(text)}")
    return [call.to_tool_call() for call in read_call_text(text)]


def _raw_calls(text: str) -> list[dict[str, Any]] | None:
    """Calls out of JSON text; their arguments stay text, so that reading them can tell a duplicate key.

    None where the text is no JSON, or its objects are no calls.
    """
    try:
        decoded = msgspec.json.decode(text, type=list[dict[str, msgspec.Raw]] | dict[str, msgspec.Raw])
        calls = [_opened(call) for call in (decoded if isinstance(decoded, list) else [decoded])]
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return calls if all("name" in call or "function" in call for call in calls) else None


def _opened(call: dict[str, msgspec.Raw]) -> dict[str, Any]:
    return {key: _value(key, bytes(raw).decode()) for key, raw in call.items()}


def _value(key: str, text: str) -> Any:
    """Arguments given as a JSON string are that string; any other value stays the text that it is."""
    if key == "function" and text.startswith("{"):
        return _opened(msgspec.json.decode(text, type=dict[str, msgspec.Raw]))
    is_raw = key in (_ARGUMENTS, *_OTHER_ARGUMENTS) and not text.startswith('"') and text != "null"
    return text if is_raw else decode(text)
