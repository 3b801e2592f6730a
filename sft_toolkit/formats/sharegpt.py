"""ShareGPT records (`conversations` of `from` and `value`) as OpenAI chat records."""

from __future__ import annotations

from typing import Any

import msgspec

from sft_toolkit.errors import RecordError
from sft_toolkit.json_text import decode

_ROLES = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "model": "assistant",
    "observation": "tool",
    "tool": "tool",
    "function_response": "tool",
}
_CALLS = ("function_call", "tool_call")
_MOVED = ("conversations", "system")


def matches(record: dict[str, Any]) -> bool:
    return "messages" not in record and isinstance(record.get("conversations"), list)


def to_openai(record: dict[str, Any]) -> dict[str, Any]:
    """Raises RecordError for a turn whose role is unknown or whose call is not JSON."""
    messages = [_message(index, turn) for index, turn in enumerate(record["conversations"])]
    system = record.get("system")
    if isinstance(system, str) and system:
        messages.insert(0, {"role": "system", "content": system})
    rest = {key: value for key, value in record.items() if key not in _MOVED}
    return {**rest, "messages": messages}


def _message(index: int, turn: Any) -> dict[str, Any]:
    if not isinstance(turn, dict):
        raise RecordError("bad_messages", f"turn {index} is not an object")
    speaker = turn.get("from", turn.get("role"))
    value = turn.get("value", turn.get("content"))
    rest = {key: held for key, held in turn.items() if key not in ("from", "role", "value", "content")}
    if not isinstance(speaker, str):
        raise RecordError("unknown_role", f"turn {index} does not say who speaks")
    if speaker in _CALLS:
        return {"role": "assistant", "content": None, "tool_calls": _calls(index, value), **rest}
    if speaker not in _ROLES:
        known = ", ".join(sorted({*_ROLES, *_CALLS}))
        raise RecordError("unknown_role", f"turn {index} is from {speaker!r}", f"known speakers: {known}")
    return {"role": _ROLES[speaker], "content": value, **rest}


class _Call(msgspec.Struct):
    """A call as JSON text; its arguments stay text, so that reading them can tell a duplicate key."""

    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"null")


def _calls(index: int, value: Any) -> list[Any]:
    if not isinstance(value, str):
        return value if isinstance(value, list) else [value]
    try:
        decoded = msgspec.json.decode(value, type=list[_Call] | _Call)
    except (msgspec.DecodeError, RecursionError) as fault:
        raise RecordError("bad_tool_calls", f"the call of turn {index} cannot be read: {fault}") from fault
    calls = decoded if isinstance(decoded, list) else [decoded]
    return [{"name": call.name, "arguments": _arguments(bytes(call.arguments).decode())} for call in calls]


def _arguments(text: str) -> Any:
    """Arguments given as a JSON string are that string; any other value stays the text that it is."""
    return decode(text) if text.startswith('"') else text
