"""How an opened thinking block is sent: servers differ, and a wrong form is no error there (docs/teachers.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from sft_toolkit.json_text import encode_text
from sft_toolkit.teachers.requests import Asking, Request
from sft_toolkit.teachers.thinking import UNKNOWN, Messages, open_mark

COMPLETIONS, REASONING_FIELD, REASONING_PREFIX, THINKING_PART = (
    "completions",
    "reasoning-field",
    "reasoning-prefix",
    "thinking-part",
)
OPENER_ALONE, CONTENT, PREFIX_FLAG = "opener-alone", "content", "prefix-flag"
AUTO, NONE = "auto", "none"
TEMPLATE_VARIABLES = "chat_template_kwargs"
_CONTINUE = {"continue_final_message": True, "add_generation_prompt": False}
_PREFIX = {"prefix": True}

_Form = Callable[[str, str], tuple[dict[str, Any], dict[str, Any]]]
# From the opener, and the template's tag with a line's end, to the last assistant message and what goes beside the
# messages. In the order in which they are tried: those first of which a server's reply can show most.
_CHAT_FORMS: dict[str, _Form] = {
    REASONING_FIELD: lambda opener, tag: (
        {"content": "", "reasoning_content": opener, "reasoning": opener},
        _CONTINUE,
    ),
    REASONING_PREFIX: lambda opener, tag: ({"content": "", "reasoning_content": opener, **_PREFIX}, {}),
    THINKING_PART: lambda opener, tag: ({"content": [_thinking_part(opener)], **_PREFIX}, {}),
    OPENER_ALONE: lambda opener, tag: ({"content": opener}, _CONTINUE),
    CONTENT: lambda opener, tag: ({"content": tag + opener}, _CONTINUE),
    PREFIX_FLAG: lambda opener, tag: ({"content": tag + opener, **_PREFIX}, {}),
}
FORMS = (COMPLETIONS, *_CHAT_FORMS)
CONTINUED_AS_TEXT = frozenset({OPENER_ALONE, CONTENT, PREFIX_FLAG})
"""Forms that go on as the content of a message, so that a reply may close thinking that it never opened."""
TAGGED = frozenset({CONTENT, PREFIX_FLAG})
"""Forms whose tag is text of ours: a reply alone cannot show that the template would have written it there."""
DEFAULT_TAG = UNKNOWN.add


class Template(Protocol):
    """The chat template of a teacher, applied here."""

    def opened(self, request: Request, variables: Mapping[str, Any]) -> str:
        """The prompt of a question, with thinking open and the opener as its first words where it has an opener."""


def chat_body(asking: Asking, request: Request, tag: str = DEFAULT_TAG) -> dict[str, Any]:
    """Body for /chat/completions; an opener goes into a last assistant message, in the form that `asking` names.

    `tag` opens thinking in the teacher's template, for the forms that write it themselves.
    """
    messages, flags = [*map(_on_the_wire, request.messages)], dict[str, Any]()
    if request.opener:
        last, flags = _CHAT_FORMS[asking.prefill](request.opener, tag)
        messages.append({"role": "assistant", **last})
    tools = {"tools": request.tools} if request.tools else {}
    return asking.without_left_out(
        {**_common(asking, request), "messages": messages, **flags, **tools, **request.options}
    )


def completion_body(asking: Asking, request: Request, template: Template) -> dict[str, Any]:
    """Body for /completions: the rendered prompt, the thinking block opened, the opener."""
    body = {**_common(asking, request), "prompt": template.opened(request, template_variables(asking))}
    body.pop(TEMPLATE_VARIABLES, None)
    return asking.without_left_out(body)


def template_variables(asking: Asking) -> Mapping[str, Any]:
    """What the user gives the chat template, for one applied here too: by the name under which servers take it."""
    given = asking.parameters.get(TEMPLATE_VARIABLES)
    return given if isinstance(given, Mapping) else {}


def probe_body(asking: Asking, messages: Messages, generation: bool) -> dict[str, Any]:
    """Body that asks a server how it renders `messages`."""
    sent = [*map(_on_the_wire, messages)]
    return {"model": asking.model, **asking.parameters, "messages": sent, "add_generation_prompt": generation}


def holds_opener(rendered: str, opener: str, own: str | None = None) -> bool:
    """True where a rendered prompt ends with `opener` as the first words of open thinking.

    `own` is what the template itself writes before the reasoning of this conversation; without it, the tag before the
    opener has to be one of a family known here. White space between tag and opener does not count.

    >>> holds_opener("<|assistant|><think>Let us", "Let us")
    True
    >>> holds_opener("<|assistant|><think></think><think>Let us", "Let us")
    False
    """
    before, found, after = rendered.rpartition(opener.strip())
    if not found or after.strip():
        return False
    return open_mark(before) is not None if own is None else before.rstrip() == own.rstrip()


def _common(asking: Asking, request: Request) -> dict[str, Any]:
    return {"model": asking.model, "seed": asking.sampling_seed(request), **asking.parameters}


def _thinking_part(opener: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": opener}], "closed": False}


def _on_the_wire(message: dict[str, Any]) -> dict[str, Any]:
    """Chat templates want the arguments of calls as objects, servers want them as JSON text, and every call an id.

    Reasoning goes under both names that servers read.
    """
    if "reasoning" in message:
        message = {**message, "reasoning_content": message["reasoning"]}
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
