"""Messages within a message: OpenAI's harmony (gpt-oss) and Muse Glimmer, which tell by a header what each holds.

    <|start|>assistant<|channel|>analysis<|message|>REASONING<|end|>
    <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>
    <|start|>assistant<|channel|>final<|message|>CONTENT<|return|>

The recipient may stand before the channel, as gpt-oss' template writes it; the first header may lack
<|start|>assistant, which a prompt ends with. Commentary to nobody is content. `functions.` belongs to the dialect.
Muse Glimmer has recipients alone: to=self is reasoning, to=user content, to=NAME a call, ended by <|eom|> or <|eot|>.
Grammar: OpenAI's harmony format; the templates of gpt-oss and Muse Glimmer, as `trl` ships them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sft_toolkit.formats.dialects.call_objects import read_arguments
from sft_toolkit.formats.dialects.code import OutsideCode
from sft_toolkit.formats.dialects.literals import read_value
from sft_toolkit.formats.dialects.markup import Block, Call, CallDialect, Source, Unreadable
from sft_toolkit.formats.dialects.tags import read_marked

STARTS = re.compile(
    r"\s*+(?:<\|start\|>assistant\b|<\|channel\|>\s*(?:analysis|commentary|final)\b"
    r"|(?:assistant\s*)?to=[\w.-]+\s*<\|(?:channel|message)\|>)"
)
_TO = r"(?:to=[^\s<]++\s*+)?"
BEGINS = re.compile(r"<\|(?:start|channel|message)\|>")
_HEADER = re.compile(
    rf"\s*+(?:<\|start\|>)?((?:assistant\s*+)?{_TO}(?:<\|channel\|>\s*+(?:analysis|commentary|final)\b\s*+)?{_TO}"
    r"(?:<\|constrain\|>)?(?:[a-z]{1,9}\s*+)?)<\|message\|>"
)
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_END_MARK = r"<\|(?:end|return|call|eom|eot)\|>"
_ENDS = re.compile(rf"{_END_MARK}|(?=<\|(?:start|channel)\|>)")
_ENDS_OUTSIDE_CODE = OutsideCode(_ENDS.pattern)
_END = re.compile(rf"\s*+{_END_MARK}")
_ATEM = ("<atem:function_calls>", "</atem:function_calls>")

Kind = Literal["reasoning", "content", "call"]


@dataclass(frozen=True, slots=True)
class Channel:
    """One message within the message. `begin` and `end` span all of it, `closed` says that an end mark stood there."""

    kind: Kind
    text: str
    begin: int
    end: int
    closed: bool
    calls: tuple[Call, ...] = ()


def read_channels(source: Source, at: int = 0) -> Iterator[Channel]:
    """The messages that follow one another from `at` on, as far as headers go. Raises Unreadable for a bad call."""
    while header := _HEADER.match(source.text, at):
        channel, recipient = _CHANNEL.search(header[1]), _RECIPIENT.search(header[1])
        to = recipient[1] if recipient else ""
        kind: Kind = "content"
        if to and to not in ("self", "user"):
            block = _call(source, to, header.end())
            yield Channel("call", "", at, block.end, True, tuple(block.calls))
            at = block.end
            continue
        if to == "self" or (channel and channel[1] == "analysis"):
            kind = "reasoning"
        body, end, closed = _body(source.text, header.end())
        yield Channel(kind, body.strip(), at, end, closed)
        at = end


def _body(text: str, begin: int) -> tuple[str, int, bool]:
    """The text of a message, the index behind its end mark, and whether there was one."""
    ending = _ENDS_OUTSIDE_CODE.search(text, begin) or _ENDS.search(text, begin)
    if not ending:
        return text[begin:], len(text), False
    return text[begin : ending.start()], ending.end(), True


def _call(source: Source, to: str, begin: int) -> Block:
    at = source.skip(begin)
    if source.text.startswith(_ATEM[0], at):
        block = read_marked(*_ATEM, source, at)
        return Block(block.calls, _behind_end(source.text, block.end))
    name = to.removeprefix("functions.")
    if not name:
        raise Unreadable("to=functions. names no function")
    try:
        end = read_value(source.text, at)[1]
    except ValueError:
        end = at
    behind = _behind_end(source.text, end)
    if end > at and (behind > end or source.skip(end) == len(source.text)):
        return Block([Call(name, read_arguments(source.text[at:end]))], behind)
    body, behind, _ = _body(source.text, begin)
    return Block([Call(name, read_arguments(body))], behind)


def _behind_end(text: str, at: int) -> int:
    mark = _END.match(text, at)
    return mark.end() if mark else at


def _read(source: Source, at: int) -> Block:
    channel = next(read_channels(source, at), None)
    if channel is None or channel.kind != "call":
        raise Unreadable("no <|message|> follows to=")
    return Block(list(channel.calls), channel.end)


_RECIPIENT_MARK = r"to=functions\.[\w.:/-]{1,200}+[^<\n]{0,80}+<\|(?:channel|constrain|message)\|>"
_CHANNEL_MARK = rf"<\|channel\|>(?:analysis|commentary)\s*+{_RECIPIENT_MARK}"
HARMONY = CallDialect(
    "to=functions.",
    "gpt-oss (harmony)",
    (
        rf"<\|start\|>assistant\s*+(?:<\|channel\|>(?:analysis|commentary)\s*+)?{_RECIPIENT_MARK}",
        _CHANNEL_MARK,
        _RECIPIENT_MARK,
    ),
    _read,
)
