"""Calls without any mark, distinguished from text only because all of the content is calls of declared tools.

    [f(a=1), get weather.now(city="Oslo")]              ToolACE; names as they are declared, spaces and dots included
    {"name": "f", "parameters": {…}}                    Llama 3.1 and 3.2; several follow one another or stand in a list
    Action: f                                           ReAct; `Thought: …` before it is reasoning
    Action Input: {…}

An object holds nothing but name, arguments or parameters, and an id or the type `function`: one with a description is
a declaration. ReAct's `Final Answer:` is the content, `Thought:` before it reasoning.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sft_toolkit.formats.dialects.call_objects import calls_of_value, read_arguments
from sft_toolkit.formats.dialects.end_tokens import AFTER_CALL
from sft_toolkit.formats.dialects.literals import read_value
from sft_toolkit.formats.dialects.markup import Call, Source, Unreadable
from sft_toolkit.formats.dialects.python_calls import read_python_list

_KEYS = frozenset({"name", "arguments", "parameters", "id", "type"})
_SEPARATOR = re.compile(r"[\s,;]*+")
_SCHEMA_KEYS = frozenset({"type", "properties", "required"})
_BEGINS = re.compile(r"\s*+(?:Thought|Action|Final Answer):")
_LABEL = re.compile(r"^[ \t]*+(Thought|Action Input|Action|Observation|Final Answer):", re.MULTILINE)


def read_list(source: Source) -> list[Call] | None:
    """ToolACE's list, where it is all of the text and every name is declared; else None."""
    begin = source.skip(0)
    if source.text[begin : begin + 1] != "[":
        return None
    try:
        block = read_python_list(source, begin, len(source.text))
    except Unreadable:
        return None
    return _declared(source, block.calls, block.end)


def read_json(source: Source) -> list[Call] | None:
    """Llama's objects, where they are all of the text and every name is declared; else None."""
    at = source.skip(0)
    calls: list[Call] = []
    while source.text[at : at + 1] in ("{", "["):
        try:
            value, end = read_value(source.text, at)
        except ValueError:
            return None
        if not _is_call(value):
            return None
        calls += calls_of_value(value)
        separator = _SEPARATOR.match(source.text, end)
        at = separator.end() if separator else end
    return _declared(source, calls, at)


def _is_call(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(member, dict) and _is_call(member) for member in value)
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value.keys() <= _KEYS:
        return False
    given = [value[key] for key in ("arguments", "parameters") if key in value]
    return len(given) == 1 and value.get("type", "function") == "function" and not is_schema(given[0])


def is_schema(value: Any) -> bool:
    """True for a JSON Schema of arguments: a declaration is no call."""
    return isinstance(value, dict) and value.get("type") == "object" and value.keys() & _SCHEMA_KEYS != {"type"}


def _declared(source: Source, calls: list[Call], end: int) -> list[Call] | None:
    """The calls, if they are all of the text, and all readable ones of declared tools."""
    behind = AFTER_CALL.match(source.text, end)
    if not calls or not behind or behind.end() < len(source.text):
        return None
    names = source.tools.names
    return calls if all(call.name in names and isinstance(call.arguments, dict) for call in calls) else None


BARE: tuple[Callable[[Source], list[Call] | None], ...] = (read_list, read_json)


def read_react(source: Source) -> tuple[str | None, str, list[Call]] | None:
    """(reasoning, content, calls) of a text in ReAct's form that calls a declared tool or answers; else None."""
    if not source.tools.names or not _BEGINS.match(source.text):
        return None
    labels = list(_LABEL.finditer(source.text))
    ends = [*(label.start() for label in labels[1:]), len(source.text)]
    parts = [(label[1], source.text[label.end() : end].strip()) for label, end in zip(labels, ends, strict=True)]
    thought = parts[0][1] if parts[0][0] == "Thought" else None
    match parts[1:] if thought is not None else parts:
        case [("Final Answer", _), *_]:
            answer = labels[1 if thought is not None else 0]
            return thought or None, source.text[answer.end() :].strip(), []
        case [("Action", name), ("Action Input", given), *rest] if rest in ([], [("Observation", "")]):
            name = name.strip("`")
            return (thought or None, "", [Call(name, read_arguments(given))]) if name in source.tools.names else None
    return None
