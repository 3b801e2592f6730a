"""Reasoning in fields and in the text of assistant messages, under the names that servers and data sets give it."""

from __future__ import annotations

from typing import Any

from sft_toolkit.errors import RecordError

FIELDS = ("reasoning", "reasoning_content", "thinking", "thought")
PART_TYPES = ("thinking", "reasoning")
OPENING, CLOSING = "<think>", "</think>"
_DETAILS = "reasoning_details"
_BARE_DETAIL = frozenset({"type", "text", "format", "index"})


def field_reasoning(given: dict[str, Any], inline: str, extra: dict[str, Any], notes: list[str]) -> str | None:
    """The reasoning of a message's fields, its details and, `inline`, its parts; what is no text stays in `extra`.

    Raises RecordError where two places hold different reasoning.
    """
    found = [inline] if inline else []
    for key in FIELDS:
        value = given.get(key)
        if value is None or value == "" or value == [] or value == {}:
            continue
        if isinstance(value, bool):
            extra[f"source_{key}"] = value
        elif not isinstance(value, str):
            raise RecordError("bad_reasoning", f"has {key} that is not text")
        else:
            found.append(value)
    if given.get(_DETAILS):
        found += _from_details(given[_DETAILS], extra, notes)
    return agreed(found)


def agreed(found: list[str]) -> str | None:
    """The reasoning that all places hold. Raises RecordError where they differ."""
    if not found:
        return None
    if any(text.strip() != found[0].strip() for text in found[1:]):
        raise RecordError("ambiguous_reasoning", "holds different reasoning in two places", "keep one of them")
    return found[0] if found[0].strip() else None


def _from_details(details: Any, extra: dict[str, Any], notes: list[str]) -> list[str]:
    """OpenRouter's list: the texts are the trace; summaries and encrypted forms of it are kept, never trained."""
    if not (isinstance(details, list) and all(isinstance(detail, dict) for detail in details)):
        extra["source_reasoning_details"] = details
        return []
    texts = [
        detail for detail in details if detail.get("type") == "reasoning.text" and isinstance(detail.get("text"), str)
    ]
    rest = [
        {key: value for key, value in detail.items() if key != "text" or detail not in texts}
        for detail in details
        if detail not in texts or not _BARE_DETAIL.issuperset(detail)
    ]
    if rest:
        extra["source_reasoning_details"] = rest
        notes.append("reasoning_details_kept")
    joined = "".join(detail["text"] for detail in texts)
    return [joined] if joined else []
