"""Conversations as rows of a record shard, and rows of any Arrow or Parquet table as records."""

from __future__ import annotations

from typing import Any

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError
from sft_toolkit.json_text import decode, encode_text

_SCALARS = ("id", "dataset", "domain", "difficulty", "effort")
_JSON_TEXT = ("messages", "conversations", "tools", "provenance")


def to_row(conversation: Conversation) -> dict[str, Any]:
    """One row of the record schema: scalars as they are, everything nested as JSON text."""
    return {
        **{name: getattr(conversation, name) for name in _SCALARS},
        "messages": encode_text([message.to_record() for message in conversation.messages]),
        "tools": encode_text(conversation.tools) if conversation.tools else None,
        "provenance": encode_text(conversation.provenance) if conversation.provenance else None,
        "extra": encode_text(conversation.extra) if conversation.extra else None,
    }


def from_row(row: dict[str, Any], ours: bool) -> dict[str, Any]:
    """The record that a table row holds; `ours` says that the row is of the toolkit's record schema.

    A column of structs has every key of every row, null where a row lacks it: such padding is dropped.
    """
    record = {key: _decoded(key, value) for key, value in row.items() if value is not None}
    if ours:
        record.update(decode(record.pop("extra", "{}")))
    return record


def _decoded(key: str, value: Any) -> Any:
    if key in _JSON_TEXT and isinstance(value, str):
        try:
            return decode(value)
        except ValueError as fault:
            raise RecordError(f"bad_{key}", f"column {key} is text that is not JSON: {fault}") from fault
    return _without_nulls(value) if key in ("messages", "conversations") else value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value
