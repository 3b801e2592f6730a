"""Reasoning between an opening and a closing mark at the beginning of the content, and the answer's wrapper behind it.

    [blank space] OPENING reasoning CLOSING [WRAPPER answer WRAPPER-END]

Marks are compared without regard to case. The wrapper goes where it belongs to the dialect and holds all of the rest;
one of control tokens does so without reasoning before it as well. A closing </think> without an opening ends what a
template's prefilled <think> began: what stands before it is reasoning. What stands in code is no mark, unless no other
closes the block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sft_toolkit.errors import RecordError
from sft_toolkit.formats.dialects.code import Code, OutsideCode


@dataclass(frozen=True, slots=True)
class Wrapper:
    """What encloses the answer. `is_token`: no prose holds it, so that it needs no reasoning before it."""

    opening: str
    closing: str
    is_token: bool = True


@dataclass(frozen=True, slots=True)
class ReasoningTag:
    """One dialect of reasoning: its marks, which models and data sets write them, and the answer's wrapper."""

    opening: str
    closing: str
    writers: str
    wrapper: Wrapper | None = None


_OUTPUT = Wrapper("<output>", "</output>", is_token=False)
_SOLUTION = Wrapper("<|begin_of_solution|>", "<|end_of_solution|>")
_RESPONSE = Wrapper("<|START_RESPONSE|>", "<|END_RESPONSE|>")

TAGS = (
    ReasoningTag("<think>", "</think>", "DeepSeek-R1, QwQ, Qwen3, GLM-4.5, Nemotron, SmolLM3, most distillates"),
    ReasoningTag("<seed:think>", "</seed:think>", "Seed-OSS"),
    ReasoningTag("<thinking>", "</thinking>", "prompts for Claude, Reflection", _OUTPUT),
    ReasoningTag("<thought>", "</thought>", "OpenO1", _OUTPUT),
    ReasoningTag("<reasoning>", "</reasoning>", "GRPO recipes"),
    ReasoningTag("[THINK]", "[/THINK]", "Magistral"),
    ReasoningTag("◁think▷", "◁/think▷", "Kimi-VL"),
    ReasoningTag("<|begin_of_thought|>", "<|end_of_thought|>", "Sky-T1, Bespoke-Stratos, OpenThoughts", _SOLUTION),
    ReasoningTag("<|START_THINKING|>", "<|END_THINKING|>", "Command A Reasoning", _RESPONSE),
    ReasoningTag("<|channel>thought", "<channel|>", "Gemma 4"),
)
_WRAPPERS = tuple(tag.wrapper for tag in TAGS if tag.wrapper and tag.wrapper.is_token)
_OPENINGS = re.compile(
    r"\s*+(?:" + "|".join(f"({re.escape(tag.opening)})" for tag in TAGS) + r")(?!(?<=\w)\w)", re.IGNORECASE
)
_CLOSINGS = {tag: OutsideCode(re.escape(tag.closing), re.IGNORECASE) for tag in TAGS}
_THINK_MARKS = OutsideCode(r"<(?P<closes>/?)think>", re.IGNORECASE, in_open_fences=True)
_LEADING_SPACE = re.compile(r"[^\S\n]*+(?:\n[^\S\n]*+(?=\n))*+\n?")


def split_reasoning(text: str) -> tuple[str | None, str]:
    """(reasoning or None, content): what opens the text as reasoning, and the rest without the answer's wrapper.

    Raises RecordError where a block is not closed, or where two blocks hold different reasoning.
    """
    code = Code(text)
    reasoning: str | None = None
    tag = None
    at = 0
    while opening := _OPENINGS.match(text, at):
        tag = TAGS[(opening.lastindex or 1) - 1]
        closing = _closing(text, opening.end(), tag, code)
        reasoning = _one(reasoning, text[opening.end() : closing.start()].strip() or None)
        at = closing.end()
    if tag:
        return reasoning, _unwrapped(_without_leading_space(text[at:]), tag.wrapper)
    if "<" not in text:
        return None, text
    first = _THINK_MARKS.search(text, 0, code)
    if first and first["closes"]:
        return text[: first.start()].strip() or None, _without_leading_space(text[first.end() :])
    for wrapper in _WRAPPERS:
        text = _unwrapped(text, wrapper)
    return None, text


def _closing(text: str, begin: int, tag: ReasoningTag, code: Code) -> re.Match[str]:
    closing = _CLOSINGS[tag].search(text, begin, code) or _swallowed(text, begin, tag)
    if not closing:
        detail = f"the content opens {tag.opening} and never closes it"
        raise RecordError("unclosed_think", detail, "drop or repair it")
    return closing


def _swallowed(text: str, begin: int, tag: ReasoningTag) -> re.Match[str] | None:
    """The first closing mark that is not a mention between ` signs, where all of them seem to stand in code.

    Models stop thinking amid a fence, and a stray ` pairs with one of the answer's.
    """
    for closing in re.compile(re.escape(tag.closing), re.IGNORECASE).finditer(text, begin):
        if not (text[closing.start() - 1] == "`" == text[closing.end() : closing.end() + 1]):
            return closing
    return None


def _one(before: str | None, found: str | None) -> str | None:
    if before and found and before != found:
        raise RecordError("ambiguous_reasoning", "two blocks hold different reasoning", "keep one of them")
    return before or found


def _unwrapped(content: str, wrapper: Wrapper | None) -> str:
    """The answer without its wrapper, where that holds all of it. Raises RecordError where one of tokens is cut off."""
    if wrapper is None:
        return content
    stripped = content.strip()
    if stripped[: len(wrapper.opening)].lower() != wrapper.opening.lower():
        return content
    inside = stripped[len(wrapper.opening) :]
    at = inside.lower().find(wrapper.closing.lower())
    if at == len(inside) - len(wrapper.closing) and at >= 0:
        return inside[:at].strip()
    if at < 0 and wrapper.is_token:
        raise RecordError("unclosed_answer", f"the content opens {wrapper.opening} and never closes it", "drop it")
    return content


def _without_leading_space(text: str) -> str:
    """`text` without blank lines before it; what indents its first line stays."""
    space = _LEADING_SPACE.match(text)
    return text[space.end() :] if space else text
