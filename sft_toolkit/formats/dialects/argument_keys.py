"""Calls of GLM-4.5 and its successors: a bare name, then pairs of <arg_key> and <arg_value>.

    NAME
    <arg_key>KEY</arg_key>
    <arg_value>VALUE</arg_value>

Line breaks between the tags may be missing (GLM-4.7); Hunyuan 2 writes <tool_sep> after the name. A call without
arguments is the name alone. The declaration gives the type of a value; line breaks go from it only where one stands on
each side. Template: GLM-4.5's, as `trl` ships it.
"""

from __future__ import annotations

import re
from typing import Any

from sft_toolkit.formats.dialects.markup import Block, Call, Source, Unreadable
from sft_toolkit.formats.dialects.typed_values import typed_value, without_own_lines

_NAME = re.compile(r"\s*+([\w.:/-]++)[ \t]*+(?:<tool_sep>)?\s*+")
_KEY = re.compile(r"\s*+<arg_key>([^<]*+)</arg_key>\s*+<arg_value>")
_VALUE_END = "</arg_value>"


def read_argument_keys(source: Source, at: int, stop: int, closed: bool = False) -> Block:
    """The one call that begins with its name at `at`. Raises Unreadable where there is no name by itself."""
    opening = _NAME.match(source.text, at)
    if not opening or not (source.text.startswith("<arg_key>", opening.end()) or (closed and opening.end() == stop)):
        raise Unreadable("it holds neither an object nor a name that begins a call")
    name, begin = opening[1], opening.end()
    arguments: dict[str, Any] = {}
    at = begin
    while pair := _KEY.match(source.text, at):
        key, end = pair[1].strip(), source.find(_VALUE_END, pair.end())
        if end == len(source.text) or key in arguments:
            break
        text = without_own_lines(source.text[pair.end() : end])
        arguments[key] = typed_value(text, name, key, source.tools)
        at = end + len(_VALUE_END)
    if source.skip(at) < stop:
        return Block([Call(name, source.text[begin:stop].strip())], stop)
    return Block([Call(name, arguments)], at)
