"""Text of ours in the system prompt of a conversation, or in one that stands before it."""

from __future__ import annotations

from typing import Any

from sft_toolkit.chat.template import Messages

_SYSTEM = ("system", "developer")
_BETWEEN = "\n\n"


def in_system(messages: Messages, text: str, parts: bool, front: bool = False) -> Messages:
    """Write `text` at the end of the system prompt that `messages` begin with, or at its front, an empty line between.

    Where there is none, returns the messages that must stand before: a system message of the text alone. `parts` says
    whether the template takes content as a list of parts.
    """
    if not messages or messages[0]["role"] not in _SYSTEM:
        return [{"role": "system", "content": [{"type": "text", "text": text}] if parts else text}]
    content = messages[0]["content"] or ""
    if isinstance(content, str):
        joined: Any = _joined(content, text, front)
    else:
        place = 0 if front else len(content) - 1
        part = {**content[place], "text": _joined(content[place]["text"], text, front)}
        joined = [*content[:place], part, *content[place + 1 :]]
    messages[0] = {**messages[0], "content": joined}
    return []


def _joined(content: str, text: str, front: bool) -> str:
    if not content.strip():
        return text
    return _BETWEEN.join((text, content) if front else (content, text))
