"""Calls as <invoke name="NAME"> with <parameter name="KEY"> (Anthropic, MiniMax-M2, Muse Glimmer, DeepSeek-V3.2).

    <invoke name="NAME">
    <parameter name="KEY">VALUE</parameter>
    </invoke>

The tags may carry a prefix (`atem:`, `antml:`, `｜DSML｜`). The declaration gives the type of a value; DeepSeek's
attribute string="true" makes it text, string="false" JSON. A line break goes from a value only where one stands on
both sides.
Wrappers: <function_calls>, <minimax:tool_call>, <atem:function_calls>, <｜DSML｜function_calls>; or none.
"""

from __future__ import annotations

import re
from typing import Any

from sft_toolkit.formats.dialects.literals import BOTH_WORDS, read_whole
from sft_toolkit.formats.dialects.markup import Block, Call, Source, Unreadable
from sft_toolkit.formats.dialects.typed_values import typed_value, without_own_lines

PREFIX = r"(?:[a-z]+:|｜DSML｜)?"
OPENING = rf"<{PREFIX}invoke\b"
_INVOKE = re.compile(rf"<({PREFIX})invoke\s+name=[\"']([^\"'<>\n]*+)[\"']\s*+>")
_PARAMETER = re.compile(
    r"\s*+<(?:[a-z]+:|｜DSML｜)?parameter\s+name=[\"']([^\"'<>\n]*+)[\"'](?:\s+string=[\"'](true|false)[\"'])?\s*+>"
)
_MENTIONS = 100


def read_invokes(source: Source, at: int, stop: int, closed: bool = False) -> Block:
    """The calls of the <invoke>s that follow one another from `at` on. Raises Unreadable."""
    calls: list[Call] = []
    end = at
    while (opening := _INVOKE.match(source.text, at)) and opening[2].strip():
        read = _read(source, opening, stop)
        if read is None:
            break
        calls.append(read[0])
        end = read[1]
        at = source.skip(end)
    if not calls:
        raise Unreadable('it holds no <invoke name="…"> with a name')
    return Block(calls, end)


def _read(source: Source, opening: re.Match[str], stop: int) -> tuple[Call, int] | None:
    """The call and the index behind it; None where prose follows that nothing closes."""
    prefix, name, begin = opening[1], opening[2].strip(), opening.end()
    closing = f"</{prefix}invoke>"
    arguments: dict[str, Any] | None = {}
    at = begin
    while parameter := _PARAMETER.match(source.text, at):
        end = _value_end(source, prefix, parameter.end())
        if end is None or arguments is None or parameter[1] in arguments:
            arguments = None
            break
        text = source.text[parameter.end() : end]
        arguments[parameter[1]] = _value(text, parameter[2], name, parameter[1], source)
        at = end + len(f"</{prefix}parameter>")
    if arguments is None or (source.closed(closing, at) == at and source.skip(at) < min(stop, len(source.text))):
        end = min(source.find(closing, begin), max(stop, begin))
        if not source.text.startswith(closing, end) and not _PARAMETER.match(source.text, begin):
            return None
        return Call(name, source.text[begin:end].strip()), source.closed(closing, end)
    return Call(name, arguments), source.closed(closing, at)


def _value(text: str, is_text: str | None, name: str, key: str, source: Source) -> Any:
    if is_text == "true":
        return text
    text = without_own_lines(text)
    if is_text == "false":
        try:
            return read_whole(text, BOTH_WORDS)
        except ValueError:
            return text
    return typed_value(text, name, key, source.tools)


def _value_end(source: Source, prefix: str, at: int) -> int | None:
    """Where a value ends: before a closing mark that another parameter, the end of the call or of the text follows."""
    closing = f"</{prefix}parameter>"
    after = (f"<{prefix}parameter", f"</{prefix}invoke>")
    end = source.find(closing, at)
    for _ in range(_MENTIONS):
        if end == len(source.text):
            break
        behind = source.skip(end + len(closing))
        if behind == len(source.text) or source.text.startswith(after, behind):
            return end
        end = source.find(closing, end + 1)
    return None
