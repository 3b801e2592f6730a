"""Reading replies: reasoning, answer and tool calls, wherever a server put them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sft_toolkit.conversation import ToolCall
from sft_toolkit.formats.reasoning import FIELDS
from sft_toolkit.json_text import decode
from sft_toolkit.teachers.prefill import CLOSING, CONTENT, OPENING, PREFIX_FLAG
from sft_toolkit.teachers.teacher import RawReply
from sft_toolkit.tool_calls.decode import decode_arguments

_REFUSING_FINISHES = ("content_filter", "safety", "refusal")


@dataclass(slots=True)
class Reply:
    """What a teacher answered.

    `thought_closed` is False where a thinking block was opened and never closed. `misfiled` is True where marks of the
    thinking block are left in a field that should be free of them. `refusal` is why there is no answer.
    """

    reasoning: str = ""
    content: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    finish: str | None = None
    thought_closed: bool = True
    misfiled: bool = False
    refusal: str | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.reasoning.strip() or self.content.strip() or self.tool_calls)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a reply cost."""

    tokens_in: int = 0
    tokens_out: int = 0


def read_reply(raw: RawReply, opener: str | None = None, prefill: str = "none") -> Reply:
    """Read the final reply to a question whose `opener` was sent in the form `prefill`.

    Reasoning begins with the opener exactly once, whether the server echoed it or not, or is "" where there is none.
    """
    body = decode(raw.body)
    if raw.status >= 400:
        return Reply(refusal=f"HTTP {raw.status}: {error_message(body)}")
    choice = body["choices"][0]
    message = choice.get("message") or {}
    is_open = opener is not None and ("text" in choice or (bool(opener) and prefill in (CONTENT, PREFIX_FLAG)))
    text = choice["text"] if "text" in choice else _text(message.get("content"))
    field_text = next((message[name] for name in FIELDS if isinstance(message.get(name), str) and message[name]), "")
    reply = _split(field_text, text or "", is_open, bool(opener))
    reply.finish = choice.get("finish_reason")
    reply.tool_calls = [_tool_call(call) for call in message.get("tool_calls") or []]
    reply.refusal = message.get("refusal") or (reply.finish if reply.finish in _REFUSING_FINISHES else None)
    if opener and reply.reasoning.strip():
        reply.reasoning = with_opener(reply.reasoning, opener)
    return reply


def with_opener(reasoning: str, opener: str) -> str:
    """`reasoning` with `opener` before it exactly once, whether the server echoed it or not.

    >>> with_opener("Gegeben ist: x = 2", "Gegeben ist:") == with_opener("x = 2", "Gegeben ist:")
    True
    """
    echoed = reasoning.lstrip()
    rest = echoed.removeprefix(opener) if echoed.startswith(opener) else reasoning
    glued = rest[:1].isalnum() and not opener[-1:].isspace()
    return f"{opener}{' ' if glued else ''}{rest}"


def read_usage(raw: RawReply) -> Usage:
    """The tokens of a reply as the server counted them, 0 where it did not."""
    usage = decode(raw.body).get("usage") or {}
    return Usage(int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0))


def is_answer(body: Any) -> bool:
    """True where a decoded body has the shape of a reply."""
    choices = body.get("choices") if isinstance(body, dict) else None
    if not (isinstance(choices, list) and choices and isinstance(choices[0], dict)):
        return False
    return isinstance(choices[0].get("text"), str) or isinstance(choices[0].get("message"), dict)


def error_message(body: Any) -> str:
    """The sentence that an error's body holds."""
    error = body.get("error", body) if isinstance(body, dict) else body
    said = error.get("message", error.get("detail", error)) if isinstance(error, dict) else error
    return " ".join(str(said).split())[:500]


def _split(field_text: str, text: str, is_open: bool, was_opened: bool) -> Reply:
    """Reasoning and answer from a reasoning field and the text beside it.

    `is_open`: the text continues an open thinking block. `was_opened`: an opener was sent, so that a closing mark in
    the text ends the thinking that it began.
    """
    if field_text:
        misfiled = any(mark in part for mark in (OPENING, CLOSING) for part in (field_text, text))
        return Reply(field_text, text, misfiled=misfiled)
    if text.lstrip().startswith(OPENING):
        text, is_open = text.lstrip().removeprefix(OPENING).lstrip("\n"), True
    if is_open or (was_opened and CLOSING in text):
        reasoning, closing, answer = text.partition(CLOSING)
        misfiled = any(mark in answer for mark in (OPENING, CLOSING)) or OPENING in reasoning
        return Reply(reasoning.rstrip(), answer.lstrip("\n"), thought_closed=bool(closing), misfiled=misfiled)
    return Reply("", text, thought_closed=not was_opened, misfiled=CLOSING in text)


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _tool_call(call: Any) -> ToolCall:
    function = call.get("function") or {}
    arguments = decode_arguments(function.get("arguments"))
    return ToolCall(str(function.get("name", "")), arguments.value, call.get("id"), arguments.problem)
