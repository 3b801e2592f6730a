"""What of a record is its prompt, and what its attempt; values of fields by path."""

from __future__ import annotations

from typing import Any

import xxhash

from sft_toolkit.conversation import Conversation, Message
from sft_toolkit.formats.paths import PathError, places
from sft_toolkit.json_text import encode, encode_text

PROMPT_ID = "prompt_id"


def last_attempt(conversation: Conversation) -> int | None:
    """The index of the last assistant message, None where there is none."""
    turns = [index for index, message in enumerate(conversation.messages) if message.role == "assistant"]
    return turns[-1] if turns else None


def prompt_key(conversation: Conversation, field: str | None) -> str:
    """A text that is equal for attempts at one prompt.

    The field `prompt_id`, or the one named; where the record lacks it, a hash of what precedes the last attempt.
    """
    given = field_value(conversation, field or PROMPT_ID)
    if given is not None:
        return f"id {encode_text(given)}"
    end = last_attempt(conversation)
    messages = conversation.messages[: len(conversation.messages) if end is None else end]
    return f"hash {xxhash.xxh3_128_hexdigest(encode([_said(message) for message in messages]))}"


def _said(message: Message) -> list[Any]:
    calls = [[call.name, call.arguments] for call in message.tool_calls]
    return [message.role, message.text, calls]


def field_value(conversation: Conversation, path: str) -> Any:
    """What a key of the record, or a path into it, holds; None where there is nothing."""
    if path in conversation.extra:
        return conversation.extra[path]
    try:
        found = places(conversation.to_record(), path)
    except PathError:
        return None
    return found[0].value if found else None
