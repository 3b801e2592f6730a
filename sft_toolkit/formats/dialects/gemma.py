"""Gemma 4's calls: an object whose keys have no quotes and whose text stands between <|"|>.

    <|tool_call>call:NAME{key:<|"|>text<|"|>,n:3,list:[…],inner:{key:…}}<tool_call|>

Other values are written as JSON has them. Template: Gemma 4's, as `trl` ships it.
"""

from __future__ import annotations

import re
from typing import Any

from sft_toolkit.formats.dialects.literals import BOTH_WORDS, read_value
from sft_toolkit.formats.dialects.markup import Block, Call, CallDialect, Source, Unreadable
from sft_toolkit.tool_calls.decode import MAX_DEPTH

_HEAD = re.compile(r"<\|tool_call>\s*+call:\s*+([^\s{}]++)\s*+(?=\{)")
_QUOTE = '<|"|>'
_CLOSING = "<tool_call|>"
_KEY = re.compile(r"(?:<\|\"\|>)?([^<>{}\[\],:]++)(?:<\|\"\|>)?\s*+:")


def _read(source: Source, at: int) -> Block:
    head = _HEAD.match(source.text, at)
    if not head:
        raise Unreadable("no call:NAME{ follows <|tool_call>")
    try:
        arguments, end = _value(source, head.end(), 0)
        closed = source.closed(_CLOSING, end)
        if closed > end or source.find(_CLOSING, end) == len(source.text):
            return Block([Call(head[1], arguments)], closed)
    except ValueError:
        pass
    stop = source.find(_CLOSING, head.end())
    return Block([Call(head[1], source.text[head.end() : stop].strip())], source.closed(_CLOSING, stop))


def _value(source: Source, at: int, level: int) -> tuple[Any, int]:
    text = source.text
    if level > MAX_DEPTH:
        raise ValueError("nested too deeply")
    if text.startswith(_QUOTE, at):
        end = source.find(_QUOTE, at + len(_QUOTE))
        if end == len(text):
            raise ValueError("text does not end")
        return text[at + len(_QUOTE) : end], end + len(_QUOTE)
    if text[at : at + 1] in ("{", "["):
        return _bracket(source, at, level)
    return read_value(text, at, BOTH_WORDS)


def _bracket(source: Source, at: int, level: int) -> tuple[Any, int]:
    is_object = source.text[at] == "{"
    keyed: dict[str, Any] = {}
    members: list[Any] = []
    at = source.skip(at + 1)
    while source.text[at : at + 1] not in ("}", "]"):
        key = _KEY.match(source.text, at) if is_object else None
        if is_object and (not key or key[1].strip() in keyed):
            raise ValueError(f"no key at character {at}")
        member, at = _value(source, source.skip(key.end()) if key else at, level + 1)
        if key:
            keyed[key[1].strip()] = member
        else:
            members.append(member)
        at = source.skip(at)
        if source.text[at : at + 1] not in (",", "}", "]"):
            raise ValueError(f"no comma at character {at}")
        at = source.skip(at + 1) if source.text[at] == "," else at
    if source.text[at] != ("}" if is_object else "]"):
        raise ValueError(f"the wrong bracket at character {at}")
    return (keyed if is_object else members), at + 1


GEMMA = CallDialect("<|tool_call>", "Gemma 4", (r"<\|tool_call>",), _read)
