"""How an opened thinking block is sent: servers differ, and a wrong form is no error there (docs/teachers.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sft_toolkit.json_text import encode_text
from sft_toolkit.teachers.requests import Asking, Request

OPENING, CLOSING = "<think>", "</think>"
COMPLETIONS, REASONING_FIELD, CONTENT, PREFIX_FLAG, NONE = (
    "completions",
    "reasoning-field",
    "content",
    "prefix-flag",
    "none",
)
FORMS = (COMPLETIONS, REASONING_FIELD, CONTENT, PREFIX_FLAG)
AUTO = "auto"
MODES = (AUTO, *FORMS, NONE)
_CONTINUE = {"continue_final_message": True, "add_generation_prompt": False}

Render = Callable[[Request], str]
"""The chat template applied to a question, with the generation prompt."""


def chat_body(asking: Asking, request: Request) -> dict[str, Any]:
    """Body for /chat/completions; an opener goes into a last assistant message, in the form that `asking` names."""
    last, flags = _opened(asking.prefill, request.opener) if request.opener else ([], {})
    tools = {"tools": request.tools} if request.tools else {}
    messages = [*map(_on_the_wire, request.messages), *last]
    return {**_common(asking, request), "messages": messages, **flags, **tools, **request.options}


def completion_body(asking: Asking, request: Request, render: Render) -> dict[str, Any]:
    """Body for /completions: the rendered prompt, the thinking block opened, the opener."""
    return {**_common(asking, request), "prompt": opened_prompt(render(request), request.opener)}


def opened_prompt(rendered: str, opener: str | None) -> str:
    """The rendered prompt with an open thinking block that begins with `opener`; some templates open it themselves."""
    if opener is None:
        return rendered
    if is_open(rendered):
        return rendered.rstrip() + "\n" + opener
    return f"{rendered}{OPENING}\n{opener}"


def is_open(rendered: str) -> bool:
    """True where the rendered prompt ends with an open thinking block that holds nothing yet."""
    return rendered.rstrip().endswith(OPENING)


def holds_opener(rendered: str, opener: str) -> bool:
    """True where a rendered prompt ends with `opener` inside an open thinking block."""
    opened, closed = rendered.rfind(OPENING), rendered.rfind(CLOSING)
    return rendered.rstrip().endswith(opener.rstrip()) and opened > closed and rendered.rfind(opener) > opened


def _common(asking: Asking, request: Request) -> dict[str, Any]:
    return {"model": asking.model, "seed": asking.sampling_seed(request), **asking.parameters}


def _on_the_wire(message: dict[str, Any]) -> dict[str, Any]:
    """Chat templates want the arguments of calls as objects, servers want them as JSON text, and every call an id."""
    if "tool_calls" not in message:
        return message
    calls = [
        {
            "id": call.get("id") or f"call_{index}",
            "type": "function",
            "function": {**call["function"], "arguments": _json_text(call["function"]["arguments"])},
        }
        for index, call in enumerate(message["tool_calls"])
    ]
    return {**message, "tool_calls": calls}


def _json_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else encode_text(arguments)


def _opened(form: str, opener: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The last assistant message and the flags beside the messages."""
    message: dict[str, Any] = {"role": "assistant"}
    inline = f"{OPENING}\n{opener}"
    if form == REASONING_FIELD:
        return [{**message, "content": "", "reasoning_content": opener, "reasoning": opener}], _CONTINUE
    if form == CONTENT:
        return [{**message, "content": inline}], _CONTINUE
    if form == PREFIX_FLAG:
        return [{**message, "content": inline, "prefix": True}], {}
    raise ValueError(f"{form}: sends no opener")
