"""Kimi-K2's calls: an id that holds the name, and the arguments, between control tokens.

    <|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>…
    <|tool_calls_section_end|>

`functions.` and the number belong to the dialect. Template: Kimi-K2-Instruct's.
"""

from __future__ import annotations

import re

from sft_toolkit.formats.dialects.call_objects import read_arguments
from sft_toolkit.formats.dialects.literals import read_value
from sft_toolkit.formats.dialects.markup import Block, Call, CallDialect, Source, Unreadable

_OPENINGS = (r"<\|tool_calls_section_begin\|>", r"<\|tool_call_begin\|>")
_SECTION = re.compile(r"<\|tool_calls_section_begin\|>")
_HEAD = re.compile(
    r"\s*+<\|tool_call_begin\|>\s*+(?:functions\.)?([^\s<>:]*+)(?::\d+)?\s*+<\|tool_call_argument_begin\|>\s*+"
)
_END = "<|tool_call_end|>"
_LAST = "<|tool_calls_section_end|>"


def _read(source: Source, at: int) -> Block:
    section = _SECTION.match(source.text, at)
    end = section.end() if section else at
    calls: list[Call] = []
    while head := _HEAD.match(source.text, end):
        if not head[1]:
            break
        raw, end = _arguments(source, head.end())
        calls.append(Call(head[1], read_arguments(raw)))
    if not calls:
        raise Unreadable("no name of a call stands before <|tool_call_argument_begin|>")
    return Block(calls, source.closed(_LAST, end))


def _arguments(source: Source, begin: int) -> tuple[str, int]:
    try:
        end = read_value(source.text, begin)[1]
    except ValueError:
        end = begin
    closing = source.find(_END, end)
    if end > begin and closing == len(source.text):
        return source.text[begin:end], end
    return source.text[begin:closing], min(closing + len(_END), len(source.text))


KIMI = CallDialect("<|tool_calls_section_begin|>", "Kimi-K2", _OPENINGS, _read)
