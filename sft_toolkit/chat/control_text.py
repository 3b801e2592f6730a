"""Text of messages that looks like a control token: found before rendering, followed into the rendered text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sft_toolkit.chat.template import Messages, Tools
from sft_toolkit.errors import RecordError

_INERT = "\U0010fffb"

Range = tuple[int, int]
Render = Callable[[Messages, Tools], str]


def holds_control_text(pattern: re.Pattern[str], messages: Messages, tools: Tools) -> bool:
    """True where any text of the messages or tools holds a control token."""
    return _holds(pattern, messages) or (tools is not None and _holds(pattern, tools))


def _holds(pattern: re.Pattern[str], value: Any) -> bool:
    if isinstance(value, str):
        return pattern.search(value) is not None
    if isinstance(value, dict):
        return any(_holds(pattern, item) for item in value.values()) or any(_holds(pattern, key) for key in value)
    return isinstance(value, list) and any(_holds(pattern, item) for item in value)


def inert_ranges(pattern: re.Pattern[str], messages: Messages, tools: Tools, render: Render, text: str) -> list[Range]:
    """Where the control tokens that messages and tools hold stand in the rendered `text`.

    The conversation is rendered once more with each of them bracketed by a private-use character, which then shows
    where they went. Raises RecordError `control_text` where the template takes such text apart.
    """
    bracketed = render(_bracketed(pattern, messages), None if tools is None else _bracketed(pattern, tools))
    pieces = bracketed.split(_INERT)
    if "".join(pieces) != text or len(pieces) % 2 == 0:
        raise RecordError(
            "control_text", "text of a message holds a control token that the chat template takes apart", "rewrite it"
        )
    ranges, position = [], 0
    for place, piece in enumerate(pieces):
        if place % 2:
            ranges.append((position, position + len(piece)))
        position += len(piece)
    return ranges


def _bracketed(pattern: re.Pattern[str], value: Any) -> Any:
    if isinstance(value, str):
        return pattern.sub(lambda match: f"{_INERT}{match[0]}{_INERT}", value)
    if isinstance(value, dict):
        return {_bracketed(pattern, key): _bracketed(pattern, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_bracketed(pattern, item) for item in value]
    return value
