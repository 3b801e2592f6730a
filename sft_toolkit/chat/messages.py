"""What a chat template is given: one conversation as the dicts that this template understands."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from sft_toolkit.chat.template import Messages, Tools, tojson, with_written_numbers
from sft_toolkit.conversation import Conversation, Message, ToolCall
from sft_toolkit.errors import RecordError

_IMAGES = frozenset({"image", "image_url", "input_image"})
_SHORT_ID_LENGTH = 9
_ALPHANUMERIC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The forms in which a template takes what templates disagree about; `probes` finds them out.

    `text_arguments`: tool-call arguments as JSON text. `null_content`: the empty content of a tool-calling turn as
    null. `parts`: content as a list of parts. `short_ids`: call ids of nine letters and digits. `developer_as_system`:
    developer messages under the role system.
    """

    text_arguments: bool = False
    null_content: bool = False
    parts: bool = False
    short_ids: bool = False
    developer_as_system: bool = False


def prepare(conversation: Conversation, dialect: Dialect, notes: Counter[str]) -> Messages:
    """The messages in order; tool results that answer distinct ids stand in the order of their calls.

    Raises RecordError for parts that are not text.
    """
    ids = _short_ids(conversation) if dialect.short_ids else {}
    prepared = [_message(index, message, dialect, ids) for index, message in enumerate(conversation.messages)]
    for calls, results in _answered(conversation.messages):
        order = _in_order_of_calls(calls, [conversation.messages[index] for index in results])
        if order is not None:
            notes["tool_results_reordered"] += 1
            prepared[results.start : results.stop] = [prepared[results.start + place] for place in order]
    if dialect.text_arguments and any(message.tool_calls for message in conversation.messages):
        notes["template_wants_string_arguments"] += 1
    return prepared


def prepare_tools(conversation: Conversation) -> Tools:
    """The declared tools, None where there are none."""
    declared: Tools = with_written_numbers(conversation.tools)
    return declared or None


def _message(index: int, message: Message, dialect: Dialect, ids: dict[str, str]) -> dict[str, Any]:
    role = "system" if message.role == "developer" and dialect.developer_as_system else message.role
    given = {**with_written_numbers(message.extra), "role": role, "content": _content(index, message, dialect)}
    if message.reasoning is not None:
        given["reasoning"] = given["reasoning_content"] = given["thinking"] = message.reasoning
    if message.tool_calls:
        given["tool_calls"] = [_call(call, dialect, ids) for call in message.tool_calls]
    if message.tool_call_id is not None:
        given["tool_call_id"] = ids.get(message.tool_call_id, message.tool_call_id)
    if message.name is not None:
        given["name"] = message.name
    return given


def _content(index: int, message: Message, dialect: Dialect) -> Any:
    if isinstance(message.content, list):
        for part in message.content:
            _require_text(index, part)
        if dialect.parts:
            return message.content
    text = message.text
    if not text and message.tool_calls and dialect.null_content:
        return None
    return [{"type": "text", "text": text}] if dialect.parts else text


def _require_text(index: int, part: dict[str, Any]) -> None:
    kind = part.get("type")
    if kind == "text" and isinstance(part.get("text"), str):
        return
    reason = "image_part" if kind in _IMAGES else "unsupported_part"
    raise RecordError(reason, f"message {index} has a content part of type {kind}; only text has a loss mask here")


def _call(call: ToolCall, dialect: Dialect, ids: dict[str, str]) -> dict[str, Any]:
    arguments = with_written_numbers(call.arguments)
    if dialect.text_arguments and not isinstance(arguments, str):
        arguments = tojson(arguments)
    given: dict[str, Any] = {
        **with_written_numbers(call.extra),
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }
    if call.id is not None:
        given["id"] = ids.get(call.id, call.id)
    return given


def _short_ids(conversation: Conversation) -> dict[str, str]:
    """Ids of nine letters and digits, unique in the conversation, made from the ids that it has."""
    given = dict.fromkeys(call.id for message in conversation.messages for call in message.tool_calls if call.id)
    short = {identity: identity for identity in given if _is_short(identity)}
    for identity in given:
        attempt = 0
        while identity not in short:
            candidate = _hashed(identity, attempt)
            if candidate not in short.values():
                short[identity] = candidate
            attempt += 1
    return short


def _is_short(identity: str) -> bool:
    return len(identity) == _SHORT_ID_LENGTH and all(letter in _ALPHANUMERIC for letter in identity)


def _hashed(identity: str, attempt: int) -> str:
    number = int.from_bytes(hashlib.blake2b(f"{attempt}:{identity}".encode(), digest_size=16).digest())
    letters = []
    for _ in range(_SHORT_ID_LENGTH):
        number, digit = divmod(number, len(_ALPHANUMERIC))
        letters.append(_ALPHANUMERIC[digit])
    return "".join(letters)


def _answered(messages: list[Message]) -> Iterator[tuple[list[ToolCall], range]]:
    """Each turn with several calls, and the tool results that directly follow it."""
    for index, message in enumerate(messages):
        if len(message.tool_calls) > 1:
            results = sum(1 for _ in takewhile(lambda later: later.role == "tool", messages[index + 1 :]))
            yield message.tool_calls, range(index + 1, index + 1 + results)


def _in_order_of_calls(calls: list[ToolCall], results: list[Message]) -> list[int] | None:
    """Places of the results in the order of the calls, or None where they stand in order or cannot be distinguished."""
    places = {result.tool_call_id: place for place, result in enumerate(results)}
    if len(places) != len(results) or places.keys() != {call.id for call in calls} or len(places) != len(calls):
        return None
    order = [places[call.id] for call in calls]
    return order if order != sorted(order) else None
