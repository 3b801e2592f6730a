"""Who speaks: the names that data sets give to a speaker, and the part that each plays."""

from __future__ import annotations

from functools import lru_cache

from sft_toolkit.errors import RecordError
from sft_toolkit.formats.refusals import map_line

CALL = "call"
"""A message that holds nothing but calls: a part of the assistant's turn."""
THOUGHT = "thought"
"""An item that holds nothing but reasoning: a part of the assistant's turn that follows."""

_SPEAKERS = {
    "system": ("system",),
    "developer": ("developer",),
    "user": ("user", "human", "prompter"),
    "assistant": ("assistant", "gpt", "bot", "chatbot", "ai", "model", "chatgpt", "bing", "bard"),
    "tool": (
        *("tool", "function", "ipython", "environment", "observation"),
        *("tool response", "tool result", "function response"),
    ),
    CALL: ("tool call", "function call"),
}
_KNOWN = {name: kind for kind, names in _SPEAKERS.items() for name in names}
# Items of OpenAI's Responses API say by their type what they are, where they name no role.
ITEM_TYPES = {
    "function_call": CALL,
    "custom_tool_call": CALL,
    "function_call_output": "tool",
    "custom_tool_call_output": "tool",
    "reasoning": THOUGHT,
}


@lru_cache(maxsize=1024)
def folded(name: str) -> str:
    """A speaker's name without regard to case; hyphen, underscore and blank are one."""
    return " ".join(name.casefold().replace("-", " ").replace("_", " ").split())


def speaker_kind(name: str, own: dict[str, str]) -> str:
    """system, developer, user, assistant, tool or call; `own` holds the names that a mapping adds.

    Raises RecordError for a name that nobody knows.
    """
    plain = folded(name)
    kind = own.get(plain) or _KNOWN.get(plain)
    if kind is None:
        others = ", ".join(f"as-{role}" for role in ("assistant", "system", "tool"))
        raise RecordError(
            "unknown_role", f"is from {name!r}, whom nobody knows", f"{map_line('as-user', name)} (or {others})"
        )
    return kind
