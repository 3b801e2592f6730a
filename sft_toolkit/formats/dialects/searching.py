"""Finding calls anywhere in a text, in code too: for what must hold none, and for answers that hold one amid prose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sft_toolkit.formats.dialects.bare_calls import is_schema
from sft_toolkit.formats.dialects.call_objects import calls_of_value
from sft_toolkit.formats.dialects.literals import is_too_deep, read_value
from sft_toolkit.formats.dialects.markup import Call, Source, Tools, Unreadable
from sft_toolkit.formats.dialects.python_calls import read_keywords
from sft_toolkit.formats.dialects.registry import MARKS, dialect_of, may_hold_mark

OBJECT, CODE = "object", "code"
_OBJECT_BEGIN = re.compile(r"\{(?=\s*[\"'])")
_LISTS = ("calls", "tool_calls", "function")
_ARGUMENTS = ("arguments", "args", "input", "parameters")
# A text of nothing but opening brackets costs no more than so many readings of all of it.
_READINGS = 4


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A call and where it stands: text[begin:end]. `dialect` is its mark, or "object" or "code" where it has none."""

    call: Call
    begin: int
    end: int
    dialect: str


@dataclass(frozen=True, slots=True)
class FoundObject:
    """An object in a text, and where it stands: text[begin:end]."""

    value: dict[str, Any]
    begin: int
    end: int


def find_calls(text: str, tools: Iterable[dict[str, Any]] = ()) -> list[FoundCall]:
    """Every call that the text holds, in the order of where it begins.

    Marked calls count whatever they name; objects with a name and arguments too, unless the arguments are a schema, as
    in a declaration; calls as code, f(a=1), count where the tool is declared. Calls within a marked one do not.
    """
    declared = Tools(tools)
    source = Source(text, declared)
    marked = list(_marked(source)) if may_hold_mark(text) else []
    bare = [*_objects(text), *_code(source)]
    inside = [(found.begin, found.end) for found in marked]
    free = [found for found in bare if not any(begin <= found.begin < end for begin, end in inside)]
    return sorted([*marked, *free], key=lambda found: (found.begin, found.end))


def _marked(source: Source) -> Iterator[FoundCall]:
    at = 0
    while mark := MARKS.search(source.text, at):
        dialect = dialect_of(mark)
        try:
            block = dialect.read(source, mark.start())
        except Unreadable:
            at = mark.end()
            continue
        yield from (FoundCall(call, mark.start(), block.end, dialect.name) for call in block.calls)
        at = max(block.end, mark.end())


def find_objects(text: str) -> Iterator[FoundObject]:
    """Every JSON object or Python dict that stands in the text and not within another."""
    at = spent = 0
    while (begin := _OBJECT_BEGIN.search(text, at)) and spent <= _READINGS * len(text):
        try:
            value, end = read_value(text, begin.start())
        except ValueError as fault:
            stopped = max(getattr(fault, "pos", 0), begin.end())
            spent += stopped - begin.start()
            # What nests too deeply is a run-away generation: none of the objects around it is a call.
            at = stopped if is_too_deep(fault) else begin.end()
            continue
        yield FoundObject(value, begin.start(), end)
        at = end


def _objects(text: str) -> Iterator[FoundCall]:
    for found in find_objects(text):
        yield from (FoundCall(call, found.begin, found.end, OBJECT) for call in _calls_within(found.value))


def _calls_within(value: Any, listed: bool = False) -> Iterator[Call]:
    """The calls of a decoded value: itself, or what its members hold. `listed`: it is said to be a call."""
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        given = [value[key] for key in _ARGUMENTS if key in value]
        if (given or listed) and not (given and is_schema(given[0])):
            with suppress(Unreadable):
                yield from calls_of_value(value)
        return
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _calls_within(member, key in _LISTS)
    for member in value if isinstance(value, list) else ():
        yield from _calls_within(member, listed)


def _code(source: Source) -> Iterator[FoundCall]:
    """Calls as code of declared tools, where their arguments can be read."""
    if not source.tools.names:
        return
    names = "|".join(re.escape(name) for name in sorted(source.tools.names, key=len, reverse=True))
    for begin in re.finditer(rf"(?<![\w.])({names})\(", source.text):
        with suppress(ValueError):
            arguments, end = read_keywords(source, begin.end(), len(source.text))
            yield FoundCall(Call(begin[1], arguments), begin.start(), end, CODE)
