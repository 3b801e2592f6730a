"""What an assistant message says, out of its one text: reasoning, content and calls."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sft_toolkit.errors import RecordError
from sft_toolkit.formats.dialects import channels
from sft_toolkit.formats.dialects.bare_calls import BARE, read_react
from sft_toolkit.formats.dialects.end_tokens import AFTER_CALL
from sft_toolkit.formats.dialects.markup import Block, Call, Source, Tools, Unreadable
from sft_toolkit.formats.dialects.reasoning_tags import split_reasoning
from sft_toolkit.formats.dialects.registry import MARKS, MARKS_OUTSIDE_CODE, dialect_of, may_hold_mark
from sft_toolkit.formats.dialects.tags import read_body

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Reading:
    """The parts of a message. Without any markup `content` is the text as it was."""

    reasoning: str | None
    content: str
    calls: list[Call] = field(default_factory=list)


def read_assistant_text(
    text: str,
    *,
    tools_declared: frozenset[str] | None,
    tool_message_follows: bool,
    tools: Iterable[dict[str, Any]] = (),
) -> Reading:
    """Read the dialects in an assistant's text: reasoning first, then calls.

    Calls with marks are read where the record declares tools or a tool message follows; those without, where all their
    names are among `tools_declared`. `tools`, their declarations, type the values of XML-like calls. Raises RecordError
    for reasoning that is not closed, for a call whose name cannot be read, and for text after a call.
    """
    names = tools_declared or frozenset()
    with_calls = bool(names) or tool_message_follows
    declared = Tools(tools, names) if with_calls else Tools()
    if channels.STARTS.match(text):
        return _read_channels(Source(text, declared), with_calls)
    reasoning, content = split_reasoning(text)
    if not with_calls:
        return Reading(reasoning, content)
    source = Source(content, declared)
    if may_hold_mark(content) and (marked := _read_marked(source)):
        return Reading(reasoning, *marked)
    return _read_bare(source, reasoning)


def _read_marked(source: Source) -> tuple[str, list[Call]] | None:
    """(content before the calls, calls) from the first mark outside of code; None where no mark stands there."""
    mark = MARKS_OUTSIDE_CODE.search(source.text)
    while mark:
        try:
            return source.text[: mark.start()].rstrip(), _read_to_end(source, mark)
        except RecordError:
            if not dialect_of(mark).only_whole or not source.text[: mark.start()].strip():
                raise
        mark = MARKS_OUTSIDE_CODE.search(source.text, mark.end())
    return None


def _read_to_end(source: Source, mark: re.Match[str] | None) -> list[Call]:
    """The calls from `mark` on, where nothing but more of them and end tokens follow. Raises RecordError."""
    calls: list[Call] = []
    at = 0
    while mark:
        block = _block(source, mark)
        calls += block.calls
        behind = AFTER_CALL.match(source.text, block.end)
        at = behind.end() if behind else block.end
        mark = MARKS.match(source.text, at)
    if at < len(source.text):
        rest = source.text[at : at + _SHOWN].strip()
        detail = f"text stands after the call of {calls[-1].name}: {rest!r}"
        raise RecordError("text_after_call", detail, "move it before the call or into a message of its own")
    return calls


def _block(source: Source, mark: re.Match[str]) -> Block:
    dialect = dialect_of(mark)
    try:
        return dialect.read(source, mark.start())
    except Unreadable as fault:
        shown = source.text[mark.start() : mark.start() + _SHOWN]
        detail = f"the call marked {dialect.name} cannot be read: {fault} ({shown!r})"
        raise RecordError("unreadable_call", detail, "repair it, or drop the record") from fault


def read_call_text(text: str, tools: Iterable[dict[str, Any]] = ()) -> list[Call]:
    """The calls of a text that is nothing else, as messages of the speaker `tool_call` and keys of calls hold it.

    It may be marked, an object, a list of objects, or calls as Python writes them. Raises RecordError for all else.
    """
    source = Source(text, Tools(tools))
    begin = source.skip(0)
    if mark := MARKS.match(text, begin):
        return _read_to_end(source, mark)
    try:
        block = read_body(source, begin, len(text), True)
    except Unreadable as fault:
        raise RecordError("unreadable_call", f"the call cannot be read: {fault} ({text[:_SHOWN]!r})") from fault
    behind = AFTER_CALL.match(text, block.end)
    if behind and behind.end() < len(text):
        raise RecordError("text_after_call", f"text stands after the call of {block.calls[-1].name}")
    return block.calls


def _read_bare(source: Source, reasoning: str | None) -> Reading:
    """Calls that nothing marks, where all of the text is calls of declared tools; else the text as it is."""
    for read in BARE:
        if calls := read(source):
            return Reading(reasoning, "", calls)
    if react := read_react(source):
        thought, content, calls = react
        if thought and reasoning and thought != reasoning:
            raise RecordError("ambiguous_reasoning", "two places hold different reasoning", "keep one of them")
        return Reading(thought or reasoning, content, calls)
    return Reading(reasoning, source.text)


def _read_channels(source: Source, with_calls: bool) -> Reading:
    """Messages within the message, in their order: calls come last."""
    parts: dict[str, list[str]] = {"reasoning": [], "content": []}
    calls: list[Call] = []
    end = 0
    is_call_left = False
    try:
        for channel in channels.read_channels(source):
            is_call_left = channel.kind == "call" and not with_calls
            if is_call_left:
                break
            if channel.kind == "call":
                calls += channel.calls
            elif calls:
                raise RecordError("text_after_call", f"{channel.kind} stands after the call of {calls[-1].name}")
            elif channel.kind == "reasoning" and not channel.closed:
                detail = "the content opens <|channel|>analysis and never closes it"
                raise RecordError("unclosed_think", detail, "drop or repair it")
            else:
                parts[channel.kind].append(channel.text)
            end = channel.end
    except Unreadable as fault:
        raise RecordError("unreadable_call", f"the call marked to= cannot be read: {fault}") from fault
    behind = AFTER_CALL.match(source.text, end)
    rest = source.text[behind.end() if behind else end :]
    if not is_call_left and channels.BEGINS.match(rest):
        raise RecordError("unreadable_call", f"a header of a channel cannot be read: {rest[:_SHOWN]!r}")
    if rest and calls:
        raise RecordError("text_after_call", f"text stands after the call of {calls[-1].name}: {rest[:_SHOWN]!r}")
    content = "\n\n".join(part for part in [*parts["content"], rest] if part)
    return Reading("\n\n".join(part for part in parts["reasoning"] if part) or None, content, calls)
