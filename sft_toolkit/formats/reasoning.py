"""Reasoning under the names that servers and data sets give it, brought to one: `reasoning`."""

from __future__ import annotations

from typing import Any

from sft_toolkit.errors import RecordError

FIELDS = ("reasoning", "reasoning_content", "thinking")
PART_TYPES = ("thinking", "reasoning")
OPENING, CLOSING = "<think>", "</think>"


def split_reasoning(message: dict[str, Any]) -> tuple[str | None, Any]:
    """Take the reasoning of an assistant message out of its fields, content parts or leading think block.

    Returns (reasoning or None, content without it). Raises RecordError when a think block is not closed, or when two
    places hold different reasoning.
    """
    content, inline = _from_content(message.get("content"))
    found = [text for text in (*map(message.get, FIELDS), *inline) if text]
    if any(not isinstance(text, str) for text in found):
        raise RecordError("bad_reasoning", "reasoning is not text")
    if not found:
        return None, content
    if any(text.strip() != found[0].strip() for text in found[1:]):
        raise RecordError("ambiguous_reasoning", "two places hold different reasoning", "keep one of them")
    return found[0], content


def _from_content(content: Any) -> tuple[Any, list[str]]:
    if isinstance(content, str):
        return _from_text(content)
    if not isinstance(content, list):
        return content, []
    thoughts = [part for part in content if isinstance(part, dict) and part.get("type") in PART_TYPES]
    rest = [part for part in content if not any(part is thought for thought in thoughts)]
    found = ["".join(_part_text(part) for part in thoughts)]
    match rest:
        case [{"type": "text", "text": str(opening)} as first, *others]:
            answer, inline = _from_text(opening)
            return [{**first, "text": answer}, *others], [*found, *inline]
    return rest, found


def _part_text(part: dict[str, Any]) -> str:
    for key in (part["type"], "text", *FIELDS):
        if isinstance(part.get(key), str):
            return part[key]
    raise RecordError("bad_reasoning", f"a content part of type {part['type']} holds no text")


def _from_text(content: str) -> tuple[str, list[str]]:
    opened = content.lstrip()
    if not opened.startswith(OPENING):
        return content, []
    thought, closing, answer = opened[len(OPENING) :].partition(CLOSING)
    if not closing:
        raise RecordError("unclosed_think", "the content opens <think> and never closes it", "drop or repair it")
    return answer.lstrip("\n"), [thought.strip("\n")]
