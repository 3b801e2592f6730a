"""Messages in the toolkit's own form, which is OpenAI's: read without a look at what others call things.

Nearly all messages of most runs are of this form. What has any other key or kind of value is None here, and read by
`turns`; both ways give the same message.
"""

from __future__ import annotations

from typing import Any

from sft_toolkit.conversation import EFFORTS, Message, ToolCall
from sft_toolkit.tool_calls.decode import decode_arguments

_REASONING = ("reasoning", "reasoning_content", "thinking")
_KEYS = frozenset(
    {"role", "content", "tool_calls", "tool_call_id", "name"}
    | {"weight", "mask_reason", "mask_detail", "effort", *_REASONING}
)
_ASKERS = frozenset({"system", "developer", "user"})
_SPEAKERS = frozenset({"assistant", *_ASKERS})
_NOT_ASKERS = frozenset({"tool_calls", "tool_call_id", "weight", *_REASONING})
_NOT_TOOLS = frozenset({"tool_calls", "weight", *_REASONING})
_CALL_KEYS = frozenset({"id", "type", "function"})
_FUNCTION_KEYS = {"name", "arguments"}


def canonical_message(given: Any, notes: list[str]) -> Message | None:
    """The message, None where any of it takes a second look."""
    if type(given) is not dict or not _KEYS.issuperset(given):
        return None
    role, content = given.get("role"), given.get("content")
    if len(given) == 2 and type(content) is str and type(role) is str and role in _SPEAKERS:
        return Message(role, content)
    if role == "assistant":
        return _assistants(given, content, notes)
    if type(content) is not str or type(role) is not str:
        return None
    if role in _ASKERS:
        return _rest(Message(role, content), given) if _NOT_ASKERS.isdisjoint(given) else None
    if role == "tool" and _NOT_TOOLS.isdisjoint(given):
        identity = given.get("tool_call_id")
        if identity is None or (type(identity) is str and identity):
            return _rest(Message(role, content, tool_call_id=identity), given)
    return None


def _assistants(given: dict[str, Any], content: Any, notes: list[str]) -> Message | None:
    fields = [key for key in _REASONING if key in given] if len(given) > 2 else []
    calls, weight = given.get("tool_calls"), given.get("weight")
    if not (content is None or type(content) is str) or "tool_call_id" in given or len(fields) > 1:
        return None
    reasoning = given[fields[0]] if fields else None
    if reasoning is not None and not (type(reasoning) is str and reasoning and not reasoning.isspace()):
        return None
    if weight is not None and not (type(weight) is int and 0 <= weight <= 1):
        return None
    read = _calls(calls, notes) if calls is not None else []
    if read is None:
        return None
    return _rest(Message("assistant", content, reasoning, read, weight=weight), given)


def _calls(given: Any, notes: list[str]) -> list[ToolCall] | None:
    if type(given) is not list:
        return None
    calls, found = [], []
    for call in given:
        function = call.get("function") if type(call) is dict and _CALL_KEYS.issuperset(call) else None
        if type(function) is not dict or function.keys() != _FUNCTION_KEYS or call.get("type") != "function":
            return None
        name, identity = function["name"], call.get("id")
        if not (type(name) is str and name) or not (identity is None or (type(identity) is str and identity)):
            return None
        if function["arguments"] is None:
            return None
        arguments = decode_arguments(function["arguments"])
        if arguments.double_encoded:
            found.append("double_encoded_arguments")
        calls.append(ToolCall(name, arguments.value, identity, arguments.problem))
    notes += found
    return calls


def _rest(message: Message, given: dict[str, Any]) -> Message | None:
    """Name and marks of earlier stages, where there are any."""
    if len(given) > 2:
        name, effort = given.get("name"), given.get("effort")
        if not (name is None or (type(name) is str and name)) or not (effort is None or effort in EFFORTS):
            return None
        message.name, message.effort = name, effort
        message.mask_reason, message.mask_detail = given.get("mask_reason"), given.get("mask_detail")
    return message
