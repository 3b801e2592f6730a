"""Conversations as rows of a record shard, and back."""

from __future__ import annotations

from typing import Any

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError
from sft_toolkit.json_text import decode, encode_text

_SCALARS = ("id", "dataset", "domain", "difficulty", "effort")
_JSON_TEXT = ("messages", "tools", "provenance")


def to_row(conversation: Conversation) -> dict[str, Any]:
    """One row of the record schema: scalars as they are, everything nested as JSON text."""
    return {
        **{name: getattr(conversation, name) for name in _SCALARS},
        "messages": encode_text([message.to_record() for message in conversation.messages]),
        "tools": encode_text(conversation.tools) if conversation.tools else None,
        "provenance": encode_text(conversation.provenance) if conversation.provenance else None,
        "extra": encode_text(conversation.extra) if conversation.extra else None,
    }


def from_row(row: dict[str, Any]) -> dict[str, Any]:
    """The record that a row of the toolkit's record schema holds. Raises RecordError where a column is no JSON."""
    record = {key: _decoded(key, value) for key, value in row.items() if value is not None}
    record.update(decode(record.pop("extra", "{}")))
    return record


def _decoded(key: str, value: Any) -> Any:
    if key not in _JSON_TEXT:
        return value
    try:
        return decode(value)
    except ValueError as fault:
        raise RecordError(f"bad_{key}", f"column {key} is text that is not JSON: {fault}") from fault
