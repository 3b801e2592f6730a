"""Declared tools as text of the system prompt, for templates that have no place of their own for them.

The form, one JSON object a line, is the one that `convert` reads tools back from:

    You can call these functions; each line is one of them, with the JSON Schema of its parameters.
    <tools>
    {"type": "function", "function": {"name": "get_weather", "parameters": {…}}}
    </tools>
"""

from __future__ import annotations

from typing import Any

from sft_toolkit.chat.system_prompt import in_system
from sft_toolkit.chat.template import Messages, tojson

_OPENING = "You can call these functions; each line is one of them, with the JSON Schema of its parameters."


def tools_text(tools: list[dict[str, Any]]) -> str:
    """What a prompt must hold at inference where `render --tools-in-system` wrote it in training."""
    return "\n".join([_OPENING, "<tools>", *map(tojson, tools), "</tools>"])


def tools_in_system(messages: Messages, tools: list[dict[str, Any]], parts: bool) -> Messages:
    """Write the tools at the end of the system prompt, as `in_system` does."""
    return in_system(messages, tools_text(tools), parts)
