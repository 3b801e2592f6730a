"""Declared tools as text of the system prompt, for templates that have no place of their own for them.

The form, one JSON object a line, is the one that `convert` reads tools back from:

    You can call these functions; each line is one of them, with the JSON Schema of its parameters.
    <tools>
    {"type": "function", "function": {"name": "get_weather", "parameters": {…}}}
    </tools>
"""

from __future__ import annotations

from typing import Any

from sft_toolkit.chat.template import Messages, tojson

_OPENING = "You can call these functions; each line is one of them, with the JSON Schema of its parameters."
_SYSTEM = ("system", "developer")


def tools_text(tools: list[dict[str, Any]]) -> str:
    """What a prompt must hold at inference where `render --tools-in-system` wrote it in training."""
    return "\n".join([_OPENING, "<tools>", *map(tojson, tools), "</tools>"])


def tools_in_system(messages: Messages, tools: list[dict[str, Any]], parts: bool) -> Messages:
    """Write the tools at the end of the system prompt that `messages` begin with, after an empty line.

    Where there is none, returns the messages that must stand in front: a system message of the tools alone. `parts`
    says whether the template takes content as a list of parts.
    """
    text = tools_text(tools)
    if not messages or messages[0]["role"] not in _SYSTEM:
        return [{"role": "system", "content": [{"type": "text", "text": text}] if parts else text}]
    content = messages[0]["content"] or ""
    if isinstance(content, str):
        joined: Any = _after(content, text)
    else:
        *first, last = content
        joined = [*first, {**last, "text": _after(last["text"], text)}]
    messages[0] = {**messages[0], "content": joined}
    return []


def _after(content: str, text: str) -> str:
    return f"{content}\n\n{text}" if content else text
