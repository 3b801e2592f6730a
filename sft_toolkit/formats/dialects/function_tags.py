"""Calls as <function=NAME> with <parameter=KEY> (Qwen3-Coder, Qwen3.5, Nemotron 3, Seed-OSS) or JSON (Llama 3.1).

    <function=NAME>                         <function=NAME>{"key": value}</function>
    <parameter=KEY>
    VALUE
    </parameter>
    </function>

One line break on each side of a value belongs to the markup, all else to the value, whose type the declaration
gives. `</parameter>` counts as a closing mark only where a parameter or the function ends with it, so that a value may
mention it. Templates: Qwen3-Coder's and Nemotron 3's tokenizers; Llama 3.1's prompt format for custom tools.
"""

from __future__ import annotations

import re
from typing import Any

from sft_toolkit.formats.dialects.call_objects import read_arguments
from sft_toolkit.formats.dialects.literals import read_value
from sft_toolkit.formats.dialects.markup import Block, Call, Source, Unreadable
from sft_toolkit.formats.dialects.typed_values import typed_value, without_line_breaks

OPENING = "<function="
_CLOSING = "</function>"
_NAME = re.compile(r"<function=\s*+[\"']?([^<>\n\"']*+)[\"']?\s*+>")
_PARAMETER = re.compile(r"\s*+<parameter=\s*+[\"']?([^<>\n\"']*+)[\"']?\s*+>")
_PARAMETER_END = "</parameter>"
_MENTIONS = 100
_AFTER_PARAMETER = re.compile(r"\s*+(?:<parameter=|</function>|</tool_call>|</seed:tool_call>|\Z)")


def read_functions(source: Source, at: int, stop: int, closed: bool = False) -> Block:
    """The calls of the <function=…> that follow one another from `at` on. Raises Unreadable."""
    calls: list[Call] = []
    end = at
    while source.text.startswith(OPENING, at):
        read = _read(source, at, stop)
        if read is None:
            break
        calls.append(read[0])
        end = read[1]
        at = source.skip(end)
    if not calls:
        raise Unreadable("it holds no <function=…> with a name")
    return Block(calls, end)


def _read(source: Source, at: int, stop: int) -> tuple[Call, int] | None:
    """The call and the index behind it; None where it has no name, or prose follows that nothing closes."""
    opening = _NAME.match(source.text, at)
    if not opening or not opening[1].strip():
        return None
    name, begin = opening[1].strip(), opening.end()
    end = min(source.find(_CLOSING, begin), max(stop, begin))
    if source.text.startswith("{", source.skip(begin)):
        end = _object_end(source, source.skip(begin), end)
        return Call(name, read_arguments(source.text[begin:end])), source.closed(_CLOSING, end)
    arguments, at = _parameters(source, name, begin)
    if arguments is None:
        if not source.text.startswith(_CLOSING, end) and not _PARAMETER.match(source.text, begin):
            return None
        return Call(name, source.text[begin:end].strip()), source.closed(_CLOSING, end)
    return Call(name, arguments), source.closed(_CLOSING, at)


def _object_end(source: Source, at: int, end: int) -> int:
    """A JSON object may itself speak of </function>: it ends where it ends, if a closing mark or nothing follows."""
    try:
        behind = source.skip(read_value(source.text, at)[1])
    except ValueError:
        return end
    return behind if behind > end or not source.text.startswith(_CLOSING, end) else end


def _parameters(source: Source, name: str, at: int) -> tuple[dict[str, Any] | None, int]:
    """The arguments by name and the index behind them; None where a parameter stands twice, does not end or is none."""
    arguments: dict[str, Any] = {}
    while opening := _PARAMETER.match(source.text, at):
        key = opening[1].strip()
        end = _value_end(source, opening.end())
        if end is None or key in arguments:
            return None, at
        arguments[key] = typed_value(without_line_breaks(source.text[opening.end() : end]), name, key, source.tools)
        at = end + len(_PARAMETER_END)
    behind = source.skip(at)
    rest = source.text[behind : behind + 2]
    return (arguments if arguments or rest in ("</", "") else None), at


def _value_end(source: Source, at: int) -> int | None:
    end = source.find(_PARAMETER_END, at)
    for _ in range(_MENTIONS):
        if end == len(source.text):
            break
        if _AFTER_PARAMETER.match(source.text, end + len(_PARAMETER_END)):
            return end
        end = source.find(_PARAMETER_END, end + 1)
    return None
