"""Reading replies: reasoning, answer and tool calls, wherever a server put them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sft_toolkit.conversation import ToolCall
from sft_toolkit.formats.reasoning import FIELDS, PART_TYPES
from sft_toolkit.teachers.bodies import decode_or_none
from sft_toolkit.teachers.prefill import CONTINUED_AS_TEXT
from sft_toolkit.teachers.teacher import RawReply
from sft_toolkit.teachers.thinking import MARKS, THINK
from sft_toolkit.tool_calls.decode import decode_arguments

_REFUSING_FINISHES = ("content_filter", "safety", "refusal")
_CUT_FINISHES = ("length", "model_length", "max_tokens")
_BROKEN_FINISHES = ("error", "abort")
_TAGS = [tag for mark in MARKS for tag in (mark.opening, mark.closing)]
# Marks of a thinking block as models write them, those of other templates included.
_MARK = re.compile("|".join(map(re.escape, _TAGS)), re.IGNORECASE)
_CLOSING = re.compile("|".join(re.escape(mark.closing) for mark in MARKS))
_BY_CLOSING = {mark.closing: mark for mark in MARKS}


@dataclass(slots=True)
class Reply:
    """What a teacher answered.

    `filed` is True where the server itself split thinking and answer. `thought_closed` is False where a
    thinking block was opened and never closed. `misfiled` is True where marks of the thinking block are left in a field
    that should be free of them. `refusal` is why there is no answer.
    """

    reasoning: str = ""
    content: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    finish: str | None = None
    filed: bool = False
    thought_closed: bool = True
    misfiled: bool = False
    refusal: str | None = None

    @property
    def is_cut(self) -> bool:
        """True where the reply ended at a limit of tokens."""
        return self.finish in _CUT_FINISHES

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
    body = decode_or_none(raw.body)
    if raw.status >= 400:
        return Reply(refusal=f"HTTP {raw.status}: {error_message(body)}")
    if not is_answer(body):
        return Reply(refusal="what came is no reply")
    choice = body["choices"][0]
    is_completion = not isinstance(choice.get("message"), dict)
    message = {"content": choice["text"]} if is_completion else choice["message"]
    is_open = opener is not None and (is_completion or (bool(opener) and prefill in CONTINUED_AS_TEXT))
    thoughts, text = _content(message.get("content"))
    fields = (message.get(name) for name in FIELDS)
    reply = _split(
        next((found for found in fields if found and isinstance(found, str)), thoughts), text, is_open, bool(opener)
    )
    reply.finish = choice.get("finish_reason")
    reply.tool_calls = [_tool_call(call) for call in message.get("tool_calls") or []]
    reply.refusal = message.get("refusal") or (reply.finish if reply.finish in _REFUSING_FINISHES else None)
    if opener and reply.reasoning.strip():
        reply.reasoning = with_opener(reply.reasoning, opener)
    return reply


def with_opener(reasoning: str, opener: str) -> str:
    """`reasoning` with `opener` before it exactly once, whether the server echoed it or not.

    An echo may differ in white space, and stand in marks of emphasis.

    >>> with_opener("Gegeben ist: x = 2", "Gegeben ist:") == with_opener("x = 2", "Gegeben ist:")
    True
    """
    words = r"\s+".join(map(re.escape, opener.split()))
    end = r"(?!\w)" if opener[-1:].isalnum() else ""
    echo = re.match(rf"\s*([*_]*){words}{end}\1", reasoning)
    rest = reasoning[echo.end() :] if echo else reasoning
    glued = rest[:1].isalnum() and not opener[-1:].isspace()
    return f"{opener}{' ' if glued else ''}{rest}"


def read_usage(raw: RawReply) -> Usage:
    """The tokens of a reply as the server counted them, 0 where it did not."""
    body = decode_or_none(raw.body)
    usage = body.get("usage") if isinstance(body, dict) else None
    return Usage(_tokens(usage, "prompt_tokens"), _tokens(usage, "completion_tokens"))


def is_answer(body: Any) -> bool:
    """True where a decoded body has the shape of a reply, and its writing was not broken off by an error."""
    choices = body.get("choices") if isinstance(body, dict) else None
    if not (isinstance(choices, list) and choices and isinstance(choices[0], dict)):
        return False
    message = choices[0].get("message")
    if choices[0].get("finish_reason") in _BROKEN_FINISHES:
        return False
    return _calls_are_whole(message) if isinstance(message, dict) else isinstance(choices[0].get("text"), str)


def error_message(body: Any) -> str:
    """The sentence that an error's body holds; Google sends a list of one error."""
    if isinstance(body, list) and len(body) == 1:
        return error_message(body[0])
    error = body.get("error", body) if isinstance(body, dict) else body
    said = error.get("message", error.get("detail", error)) if isinstance(error, dict) else error
    return " ".join(str(said).split())[:500]


def _split(field_text: str, text: str, is_open: bool, was_opened: bool) -> Reply:
    """Reasoning and answer from a reasoning field and the text beside it.

    `is_open`: the text continues an open thinking block. A closing mark ends the thinking that an opener began, or
    that the template opened out of sight. `was_opened`: an opener was sent.
    """
    if field_text:
        return Reply(field_text, text, filed=True, misfiled=_is_marked(field_text, text))
    if text.lstrip().startswith(THINK.opening):
        text, is_open = text.lstrip().removeprefix(THINK.opening).lstrip("\n"), True
    if is_open or THINK.closing in text:
        reasoning, closing, answer = _closed(text)
        misfiled = _is_marked(reasoning, answer)
        return Reply(reasoning.rstrip(), answer.lstrip("\n"), thought_closed=bool(closing), misfiled=misfiled)
    return Reply("", text, thought_closed=not was_opened, misfiled=_is_marked(text))


def _closed(text: str) -> tuple[str, str, str]:
    """What stands before the first tag that closes thinking, the tag, and the answer without its wrapper."""
    found = _CLOSING.search(text)
    if found is None:
        return text, "", ""
    mark = _BY_CLOSING[found.group()]
    answer = (
        text[found.end() :].lstrip().removeprefix(mark.before_answer) if mark.before_answer else text[found.end() :]
    )
    return text[: found.start()], found.group(), answer.removesuffix(mark.after_answer)


def _is_marked(*texts: str) -> bool:
    return any(_MARK.search(text) for text in texts)


def _content(content: Any) -> tuple[str, str]:
    """Thoughts and answer of a message's content, which is text, or parts of which some hold thoughts."""
    if not isinstance(content, list):
        return "", content if isinstance(content, str) else ""
    parts = [part for part in content if isinstance(part, dict)]
    thoughts = (_part_text(part) for part in parts if part.get("type") in PART_TYPES)
    return "".join(thoughts), "".join(_part_text(part) for part in parts if part.get("type") not in PART_TYPES)


def _part_text(part: dict[str, Any]) -> str:
    held = part.get(str(part.get("type"))) or part.get("text")
    if isinstance(held, list):
        return "".join(_part_text(inner) for inner in held if isinstance(inner, dict))
    return held if isinstance(held, str) else ""


def _tokens(usage: Any, name: str) -> int:
    counted = usage.get(name) if isinstance(usage, dict) else None
    return int(counted) if isinstance(counted, int | Decimal) else 0


def _calls_are_whole(message: dict[str, Any]) -> bool:
    calls = message.get("tool_calls") or []
    return isinstance(calls, list) and all(
        isinstance(call, dict) and isinstance(call.get("function"), dict) for call in calls
    )


def _tool_call(call: Any) -> ToolCall:
    function = call["function"]
    arguments = decode_arguments(function.get("arguments"))
    return ToolCall(str(function.get("name", "")), arguments.value, call.get("id"), arguments.problem)
