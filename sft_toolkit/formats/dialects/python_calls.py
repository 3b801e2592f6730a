"""Calls as Python writes them: `[f(a=1, b="x"), g()]`, or one call a line.

LFM2 puts a list between <|tool_call_start|> and <|tool_call_end|>, OLMo 3 (Dolci) lines between <function_calls> tags
or in a key of that name, Llama 3.1 `tool.call(…)` after <|python_tag|>; ToolACE writes the bare list (bare_calls.py).

Grammar: names may hold what identifiers cannot (declared ones: spaces too); values are Python literals or JSON.
LFM2.5's first template puts text between apostrophes without escaping those inside: it then ends where another
argument or the call does. Arguments without a key cannot be read, except for one object that holds all of them.
"""

from __future__ import annotations

import re
from typing import Any

from sft_toolkit.formats.dialects.literals import BOTH_WORDS, read_value, value_end
from sft_toolkit.formats.dialects.markup import Block, Call, Source, Unreadable

LINE = re.compile(r"\s*+[\w.:/-]+\s*\(")
LIST = re.compile(r"\s*+\[\s*+[\w.:/-]+(?: [\w.:/-]+)*\s*\(")
_WORD = r"[^\s=(),'\"\[\]{}]++"
_KEY = re.compile(rf"\s*+({_WORD}(?: {_WORD})*+)\s*+=\s*+(?!=)")
_SEPARATOR = re.compile(r"[ \t]*+[,;\n][\s,;]*+")
_UNESCAPED = re.compile(rf"'(?=\s*+(?:\)|,\s*+{_WORD}(?: {_WORD})*+\s*+=))")
_LLAMA_CALL = ".call"


def read_python_list(source: Source, at: int, stop: int, closed: bool = False) -> Block:
    """The calls of `[f(…), g(…)]` that begins at `at`. Raises Unreadable."""
    inside = source.skip(source.skip(at) + 1)
    block = read_python_calls(source, inside, stop)
    end = source.closed("]", block.end)
    if end == block.end and source.skip(end) < stop:
        raise Unreadable("a list of calls does not close")
    return Block(block.calls, end)


def read_python_calls(source: Source, at: int, stop: int, closed: bool = False) -> Block:
    """The calls from `at` on, parted by commas, semicolons or line breaks. Raises Unreadable."""
    calls: list[Call] = []
    end = at = source.skip(at)
    while at < stop and (opened := _name(source, at)):
        name, begin = opened
        call, end = _call(source, name, begin, stop)
        calls.append(call)
        separator = _SEPARATOR.match(source.text, end)
        if not separator:
            break
        at = separator.end()
    if not calls:
        raise Unreadable("no call as Python writes it stands there")
    return Block(calls, end)


def _name(source: Source, at: int) -> tuple[str, int] | None:
    """The name that an opening parenthesis follows, and the index behind that: a declared one, else one word."""
    text = source.text
    parenthesis = source.find("(", at)
    for _ in range(3):
        name = text[at:parenthesis].strip()
        if parenthesis < len(text) and name in source.tools.names:
            return name, parenthesis + 1
        parenthesis = text.find("(", parenthesis + 1)
        if parenthesis < 0 or parenthesis > at + 200:
            break
    if word := LINE.match(text, at):
        return word.group()[:-1].strip().removesuffix(_LLAMA_CALL), word.end()
    return None


def _call(source: Source, name: str, begin: int, stop: int) -> tuple[Call, int]:
    """The call whose arguments begin at `begin`, as raw text where they cannot be read, and the index behind it."""
    try:
        arguments, end = read_keywords(source, begin, stop)
    except ValueError:
        end = _closing(source.text, begin, stop)
        return Call(name, source.text[begin:end].strip()), min(end + 1, stop)
    return Call(name, arguments), end


def read_keywords(source: Source, begin: int, stop: int) -> tuple[dict[str, Any], int]:
    """The arguments by name that begin behind an opening parenthesis, and the index behind the closing one.

    Raises ValueError where they are anything else.
    """
    text = source.text
    arguments: dict[str, Any] = {}
    at = _space(text, begin)
    if text[at : at + 1] == "{":
        arguments, at = read_value(text, at, BOTH_WORDS)
        at = _space(text, at)
    while text[at : at + 1] != ")":
        key = _KEY.match(text, at)
        if not key or key[1] in arguments:
            raise ValueError(f"no argument at character {at}")
        arguments[key[1]], at = _value(source, key.end(), stop)
        if text[at] == ",":
            at = _space(text, at + 1)
    if not isinstance(arguments, dict):
        raise ValueError("arguments without keys")
    return arguments, at + 1


def _value(source: Source, at: int, stop: int) -> tuple[Any, int]:
    """A value and the index of the comma or parenthesis that follows it."""
    text = source.text
    try:
        value, end = read_value(text, at, BOTH_WORDS)
        end = _space(text, end)
        if text[end : end + 1] in (",", ")"):
            return value, end
    except ValueError:
        pass
    unescaped = source.search(_UNESCAPED, at + 1) if text[at : at + 1] == "'" else stop
    if unescaped >= stop:
        raise ValueError(f"no value at character {at}")
    return text[at + 1 : unescaped], _space(text, unescaped + 1)


def _closing(text: str, at: int, stop: int) -> int:
    """Index of the parenthesis that closes arguments which cannot be read, else `stop`."""
    while (end := value_end(text, at, stop)) < stop and text[end] != ")":
        at = end + 1
    return end


def _space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
