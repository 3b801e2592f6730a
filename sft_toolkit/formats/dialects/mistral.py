"""Mistral's calls: the control token [TOOL_CALLS], then a list of objects or names with [ARGS].

    [TOOL_CALLS] [{"name": …, "arguments": {…}, "id": …}, …]          v3 and v7 tokenizers
    [TOOL_CALLS]NAME[CALL_ID]ID[ARGS]{…}[TOOL_CALLS]NAME[ARGS]{…}     v11 and v13; the id only in v11

The token opens the content; after other text (v7 and later allow it) it is a mere mention unless calls run from it to
the end. Grammar: mistral-common's tokenizers, `encode_tool_calls`.
"""

from __future__ import annotations

import re
from typing import Any

from sft_toolkit.formats.dialects.call_objects import read_arguments, read_objects
from sft_toolkit.formats.dialects.literals import read_value, value_end
from sft_toolkit.formats.dialects.markup import Block, Call, CallDialect, Source, Unreadable

_TOKEN = "[TOOL_CALLS]"
_NAMED = re.compile(r"(?:\[TOOL_CALLS\])?\s*+([^\s\[\]{}]++)\s*+(?:\[CALL_ID\]([^\[\]]*+))?\[ARGS\]\s*+")


def _read(source: Source, at: int) -> Block:
    begin = source.skip(at + len(_TOKEN))
    if source.text[begin : begin + 1] in ("[", "{") and not source.text.startswith(_TOKEN, begin):
        return read_objects(source, begin, len(source.text))
    calls: list[Call] = []
    end = at
    while named := _NAMED.match(source.text, source.skip(end)):
        arguments, end = _arguments(source.text, named.end(), source.find(_TOKEN, named.end()))
        calls.append(Call(named[1], arguments, named[2]))
    if not calls:
        raise Unreadable(f"neither a list of calls nor NAME[ARGS] follows {_TOKEN}")
    return Block(calls, end)


def _arguments(text: str, begin: int, stop: int) -> tuple[dict[str, Any] | str, int]:
    try:
        value, end = read_value(text, begin)
        if isinstance(value, dict):
            return value, end
    except ValueError:
        end = value_end(text, begin, stop)
        end = stop if end == begin else end
    return read_arguments(text[begin:end]), end


MISTRAL = CallDialect(
    _TOKEN, "Mistral, Mixtral, Ministral, Devstral, Magistral", (re.escape(_TOKEN),), _read, only_whole=True
)
