"""Calls as a checker writes them into its answer: in any dialect, or as an object that says what is called.

Beside the dialects, where tools are declared:

    {"tool": "f", "args": {…}}   {"f": {…}}      the name under another key, or as the key
    f {…}   **f**: {…}   f(**{…})                the name before the arguments, with or without marks and a fence
    Action: f / Action Input: {…}                ReAct

A name may bear the namespace `functions.`. A tool's declaration is no call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from sft_toolkit.conversation import ToolCall
from sft_toolkit.formats.dialects import Call, FoundCall, find_calls, find_objects
from sft_toolkit.formats.dialects.bare_calls import is_schema
from sft_toolkit.formats.dialects.markup import Tools
from sft_toolkit.formats.dialects.searching import OBJECT

_NAME_KEYS = ("tool", "tool_name", "function", "function_name", "action", "name")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "params", "input", "tool_input", "action_input", "kwargs")
_NAMESPACES = ("functions.", "tools.", "default_api.")
_COMMENT = re.compile(r"(?<![:\"\w])//[^\n\"]*$|/\*[^*\"]*\*/", re.MULTILINE)
_BEFORE_ARGUMENTS = r"\W{0,12}(?:(?:action input|arguments?|args|parameters?|input|with|mit|the|den|json)\W{0,12}){0,3}"
_LOOK_BACK = 120
_WHOLE_ANSWER = re.compile(r"\{\s*[\"']calls[\"']\s*:")
# What may stand between two calls of one answer; any other word begins another answer.
_JOINED = re.compile(
    r"(?:\W|\d|\b(?:json|and|then|also|next|after|that|und|dann|auch|danach|außerdem|et|puis|y|luego|e|poi|the|der"
    r"|first|second|third|fourth|erste[rns]*|zweite[rns]*|dritte[rns]*|vierte[rns]*|call|calls|tool|aufruf)\b)*",
    re.IGNORECASE,
)


def answers_in(text: str, tools: Sequence[dict[str, Any]]) -> Iterator[tuple[int, list[ToolCall]]]:
    """Where each answer that `text` holds ends, and the calls it makes; `{"calls": []}` makes none.

    Calls are one answer where nothing but punctuation, numbers or words like "and then" stands between them.
    """
    found = _unprefixed(_found(text, tools) or _found(_COMMENT.sub("", text), tools), tools)
    answer: list[FoundCall] = []
    for call in found:
        if answer and not _belong(text, answer[-1], call):
            yield answer[-1].end, [each.call.to_tool_call() for each in answer]
            answer = []
        answer.append(call)
    if answer:
        yield answer[-1].end, [each.call.to_tool_call() for each in answer]
    yield from ((found.end, []) for found in find_objects(text) if found.value.get("calls") == [])


def _belong(text: str, call: FoundCall, following: FoundCall) -> bool:
    if (call.begin, call.end) == (following.begin, following.end):
        return True
    if any(_WHOLE_ANSWER.match(text, each.begin) for each in (call, following)):
        return False
    return _JOINED.fullmatch(text, call.end, following.begin) is not None


def _found(text: str, tools: Sequence[dict[str, Any]]) -> list[FoundCall]:
    names = Tools(tools).names
    objects = list(find_objects(text))
    declarations = {each.begin for each in objects if _declares(each.value)}
    found = [call for call in find_calls(text, tools) if call.begin not in declarations]
    spans = [(call.begin, call.end) for call in found]
    for each in objects if names else ():
        if each.begin not in declarations and not any(begin <= each.begin < end for begin, end in spans):
            found += _spoken_of(text, each.value, each.begin, each.end, names)
    return sorted(found, key=lambda call: (call.begin, call.end))


def _declares(value: dict[str, Any]) -> bool:
    function = value.get("function", value)
    return isinstance(function, dict) and "name" in function and "description" in function


def _spoken_of(text: str, value: dict[str, Any], begin: int, end: int, names: frozenset[str]) -> Iterator[FoundCall]:
    """The call that an object is, by its keys or by the name of a declared tool before it."""
    name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
    arguments = next((value[key] for key in _ARGUMENT_KEYS if isinstance(value.get(key), dict | str)), None)
    if is_schema(value) or is_schema(arguments):
        return
    if name is not None and _bare(name, names) in names and arguments is not None:
        yield FoundCall(Call(name, arguments), begin, end, OBJECT)
    elif len(value) == 1 and (key := next(iter(value))) in names and isinstance(value[key], dict):
        yield FoundCall(Call(key, value[key]), begin, end, OBJECT)
    elif before := _name_before(names).search(text[max(0, begin - _LOOK_BACK) : begin]):
        yield FoundCall(Call(before[1], value), begin - len(before[0]), end, OBJECT)


@lru_cache(maxsize=64)
def _name_before(names: frozenset[str]) -> re.Pattern[str]:
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    alternatives = "|".join(map(re.escape, longest_first))
    return re.compile(rf"(?<![\w.])({alternatives}){_BEFORE_ARGUMENTS}\Z", re.IGNORECASE)


def _unprefixed(found: list[FoundCall], tools: Sequence[dict[str, Any]]) -> list[FoundCall]:
    """The calls with the namespace of a declared tool taken off."""
    names = Tools(tools).names
    return [replace(each, call=replace(each.call, name=_bare(each.call.name, names))) for each in found]


def _bare(name: str, names: frozenset[str]) -> str:
    without = next((name.removeprefix(space) for space in _NAMESPACES if name.startswith(space)), name)
    return without if name not in names and without in names else name
