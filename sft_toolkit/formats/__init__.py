"""Reading others' records: each format says whether a record is its own and turns it into OpenAI chat messages."""

from __future__ import annotations

from typing import Any

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError
from sft_toolkit.formats import alpaca, openai, sharegpt

FORMATS = ("auto", "openai", "sharegpt", "alpaca")


def parse_record(record: Any, source_format: str = "auto") -> Conversation:
    """Read one decoded record in the named format; `auto` decides by its keys.

    Raises RecordError where the record is no conversation; the sentence says which message is at fault.
    """
    if not isinstance(record, dict):
        raise RecordError("not_an_object", "the record is not a JSON object")
    try:
        return openai.parse(_as_openai(record, source_format))
    except RecursionError as fault:
        raise RecordError("nested_too_deeply", "the record is nested too deeply to be read") from fault


def _as_openai(record: dict[str, Any], source_format: str) -> dict[str, Any]:
    for name, other in (("sharegpt", sharegpt), ("alpaca", alpaca)):
        if source_format == name or (source_format == "auto" and other.matches(record)):
            if not other.matches(record):
                raise RecordError("wrong_format", f"the record is not in the {name} format")
            return other.to_openai(record)
    if "messages" not in record:
        raise RecordError(
            "no_messages",
            "the record has no messages",
            "known are OpenAI messages, ShareGPT conversations and Alpaca instruction/output",
        )
    return record
