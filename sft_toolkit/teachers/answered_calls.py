"""Calls as a checker writes them into its answer: in any dialect, or as an object that says what is called.

Beside the dialects, where tools are declared: objects and YAML by their keys (`spoken_calls`), and

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
from sft_toolkit.formats.dialects.searching import OBJECT, FoundObject
from sft_toolkit.teachers.spoken_calls import Declared, bare_name, declared_arguments, says_no_call, spoken_calls
from sft_toolkit.teachers.yaml_answers import find_yaml

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
    values = (*find_objects(text), *find_yaml(text)) if "[" in text else ()
    yield from ((each.end, []) for each in values if says_no_call(each.value))


def _belong(text: str, call: FoundCall, following: FoundCall) -> bool:
    if (call.begin, call.end) == (following.begin, following.end):
        return True
    if any(_WHOLE_ANSWER.match(text, each.begin) for each in (call, following)):
        return False
    return _JOINED.fullmatch(text, call.end, following.begin) is not None


def _found(text: str, tools: Sequence[dict[str, Any]]) -> list[FoundCall]:
    """What the dialects find, and what objects and lines of YAML besides say; of an object its own keys know best."""
    declared = declared_arguments(tools)
    objects = list(find_objects(text))
    declarations = {each.begin for each in objects if _declares(each.value)}
    found = [call for call in find_calls(text, tools) if call.begin not in declarations]
    for each in objects if declared else ():
        here = [call for call in found if each.begin <= call.begin < each.end]
        is_within = any(call.begin <= each.begin < call.end for call in found if call.dialect != OBJECT)
        spoken = [] if each.begin in declarations or is_within else _spoken_of(text, each, declared)
        if len(spoken) >= max(1, len(here)):
            found = [*(call for call in found if call not in here), *spoken]
    taken = [*((call.begin, call.end) for call in found), *((each.begin, each.end) for each in objects)]
    for each in find_yaml(text) if any(name in text for name in declared) else ():
        if not any(begin < each.end and each.begin < end for begin, end in taken) and not _declares(each.value):
            found += [call for call in _spoken_of(text, each, declared) if _is_declared(call.call, declared)]
    return sorted(found, key=lambda call: (call.begin, call.end))


def _is_declared(call: Call, declared: Declared) -> bool:
    """Whether a call's arguments are ones that its tool has: lines of prose may look like YAML."""
    return isinstance(call.arguments, dict) and call.arguments.keys() <= declared.get(call.name, frozenset())


def _declares(value: Any) -> bool:
    function = value.get("function", value) if isinstance(value, dict) else None
    return isinstance(function, dict) and "name" in function and "description" in function


def _spoken_of(text: str, found: FoundObject, declared: Declared) -> list[FoundCall]:
    """The calls that an object is, by its keys or by the name of a declared tool before it."""
    calls = spoken_calls(found.value, declared)
    if calls or not isinstance(found.value, dict) or is_schema(found.value):
        return [FoundCall(call, found.begin, found.end, OBJECT) for call in calls]
    before = _name_before(frozenset(declared)).search(text[max(0, found.begin - _LOOK_BACK) : found.begin])
    if before is None:
        return []
    return [FoundCall(Call(before[1], found.value), found.begin - len(before[0]), found.end, OBJECT)]


@lru_cache(maxsize=64)
def _name_before(names: frozenset[str]) -> re.Pattern[str]:
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    alternatives = "|".join(map(re.escape, longest_first))
    return re.compile(rf"(?<![\w.])({alternatives}){_BEFORE_ARGUMENTS}\Z", re.IGNORECASE)


def _unprefixed(found: list[FoundCall], tools: Sequence[dict[str, Any]]) -> list[FoundCall]:
    """The calls with the namespace of a declared tool taken off."""
    names = Tools(tools).names
    return [replace(each, call=replace(each.call, name=bare_name(each.call.name, names))) for each in found]
