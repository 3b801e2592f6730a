"""Calls written as objects: `{"name": …, "arguments": {…}}`, one, several, or a list of them.

Grammar: JSON, else a Python literal. The name is `name` (`tool_name` in Cohere's templates, or inside `function` as in
OpenAI's API); the arguments are `arguments`, or exactly one of args, input, parameters, as an object, as text that
holds one, or as glaive's '{…}' in which apostrophes stand unescaped. Where the name can be read and the arguments
cannot, they are kept as their raw text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from sft_toolkit.formats.dialects.literals import read_value, read_whole, value_end
from sft_toolkit.formats.dialects.markup import Block, Call, Source, Unreadable
from sft_toolkit.json_text import encode_text
from sft_toolkit.tool_calls.decode import decode_arguments

ARGUMENTS = "arguments"
OTHER_ARGUMENTS = ("args", "input", "parameters")
_NAMES = ("name", "tool_name")
_IDS = ("id", "tool_call_id")
_KEY = re.compile(r"\s*+(?:\"([^\"\\\n]*+)\"|'([^'\\\n]*+)')\s*+:\s*+")
_BETWEEN = re.compile(r"[\s,;]*+")
_BETWEEN_IN_LIST = re.compile(r"[\s,;\]]*+")
_SPACE = re.compile(r"\s*+")
_OPENING = re.compile(r"\[?+\s*+\{?+")
_CLOSING = re.compile(r"[\s}\]]*+")


def read_objects(source: Source, at: int, stop: int, closed: bool = False) -> Block:
    """The calls of the objects and lists that follow one another from `at` on, as far as they are whole.

    `stop` is where a broken one ends at the latest; with `closed` the dialect's closing mark stands there, so that
    what is left over before it belongs to the last call, whose arguments then are not readable. Raises Unreadable.
    """
    text = source.text
    between = _BETWEEN_IN_LIST if text[at : at + 1] == "[" else _BETWEEN
    calls: list[Call] = []
    end = at
    while text[at : at + 1] in ("{", "["):
        try:
            more, behind = _read_object(text, at, stop)
        except Unreadable:
            if calls:
                break
            raise
        calls += more
        end = behind
        behind = _behind(between, text, end)
        if closed and behind < stop and text[behind] not in "{[":
            calls[-1:] = [_broken(text, at, stop, left_over=True)[0]]
            return Block(calls, stop)
        at = behind
        end = behind if between is _BETWEEN_IN_LIST else end
    if not calls:
        raise Unreadable("it holds neither JSON nor a Python literal that names a call")
    return Block(calls, end)


def _read_object(text: str, at: int, stop: int) -> tuple[list[Call], int]:
    """The calls of the one object or list that begins at `at`, and the index behind it. Raises Unreadable."""
    try:
        value, end = read_value(text, at)
    except ValueError:
        call, end = _broken(text, at, stop)
        return [call], end
    return _calls_as_written(text[at:end], value), end


def _calls_as_written(text: str, value: Any) -> list[Call]:
    """The calls of a value that `text` was read as. Raises Unreadable.

    Glaive's arguments may look like a Python literal whose escapes are JSON's own: '{"said": "\\"yes\\""}'.
    """
    given = value.get(_argument_key(value)) if isinstance(value, dict) else None
    if isinstance(given, str) and decode_arguments(given).problem:
        with suppress(Unreadable):
            call = _broken(text, 0, len(text))[0]
            if isinstance(call.arguments, dict):
                return [call]
    return calls_of_value(value)


def calls_of_value(value: Any) -> list[Call]:
    """The calls that a decoded object or list of objects holds. Raises Unreadable where one has no name."""
    if isinstance(value, list):
        return [call for member in value for call in calls_of_value(member)]
    if not isinstance(value, dict):
        raise Unreadable("a call is not an object")
    inner = value.get("function")
    if isinstance(inner, dict) and not any(name in value for name in _NAMES):
        outer = {key: member for key, member in value.items() if key != "function"}
        return [_call({**outer, **inner})]
    return [_call(value)]


def _call(value: dict[str, Any]) -> Call:
    named = next((key for key in _NAMES if key in value), "")
    name = value.get(named)
    if not isinstance(name, str) or not name.strip():
        raise Unreadable("a call has no name")
    holder = _argument_key(value)
    identifier = next((value[key] for key in _IDS if isinstance(value.get(key), str)), None)
    known = {named, holder, *_IDS, *(["type"] if value.get("type") == "function" else [])}
    extra = {key: member for key, member in value.items() if key not in known}
    return Call(name, settled(value.get(holder)), identifier, extra)


def _argument_key(value: dict[str, Any]) -> str:
    """The key under which the arguments stand. Raises Unreadable where it is one of several."""
    if ARGUMENTS in value:
        return ARGUMENTS
    others = [key for key in OTHER_ARGUMENTS if key in value]
    if len(others) > 1:
        raise Unreadable(f"the arguments stand under {' and '.join(others)}")
    return others[0] if others else ARGUMENTS


def settled(given: Any) -> dict[str, Any] | str:
    """Arguments as an object, else as raw text: from what stands for them in a decoded call."""
    if isinstance(given, str):
        return read_arguments(given)
    if given is None or isinstance(given, dict):
        return given or {}
    return encode_text(given)


def read_arguments(text: str) -> dict[str, Any] | str:
    """Arguments as an object, else the raw text, trimmed: from the text that stands for them."""
    text = text.strip()
    decoded = decode_arguments(text)
    if decoded.problem is None and isinstance(decoded.value, dict):
        return decoded.value
    try:
        value = read_whole(text)
    except ValueError:
        return _in_apostrophes(text)
    if isinstance(value, str) and value.lstrip().startswith("{"):
        inner = decode_arguments(value)
        return inner.value if inner.problem is None else _in_apostrophes(text)
    return value if isinstance(value, dict) else text


def _in_apostrophes(text: str) -> dict[str, Any] | str:
    """Glaive's arguments: an object in apostrophes, with more of them inside that nothing escapes."""
    if len(text) > 3 and text.startswith("'{") and text.endswith("}'"):
        inner = decode_arguments(text[1:-1])
        if inner.problem is None:
            return inner.value
    return text


def _broken(text: str, at: int, stop: int, left_over: bool = False) -> tuple[Call, int]:
    """The call of an object that is neither JSON nor a Python literal, its arguments as they stand; and its end.

    With `left_over` its last member reaches to `stop`.
    """
    begin = _behind(_OPENING, text, at)
    members: dict[str, str] = {}
    last = ""
    for key, start, end in _members(text, begin, stop):
        if key in members:
            raise Unreadable(f"a call has {key} twice")
        members[key] = text[start:end].strip()
        begin, last = start, key
    name = next((_name_of(members[key]) for key in _NAMES if key in members), None)
    if not name:
        raise Unreadable("what it holds is neither JSON nor a Python literal, and no name can be read")
    if left_over:
        # What follows the name belongs to no member: then the call is kept whole.
        members[ARGUMENTS if last in _NAMES else last] = text[at if last in _NAMES else begin : stop].strip()
    holder = _argument_key(members)
    identifier = next((_name_of(members[key]) for key in _IDS if key in members), None)
    extra = {key: member for key, member in members.items() if key not in {*_NAMES, *_IDS, holder}}
    return Call(name, read_arguments(members.get(holder, "")), identifier, extra), _behind(_CLOSING, text, end)


def _members(text: str, at: int, stop: int) -> Iterator[tuple[str, int, int]]:
    """(key, begin, end) of each member of a broken object, the last one up to `stop` where it never ends."""
    while key := _KEY.match(text, at, stop):
        end = _member_end(text, key.end(), stop)
        yield key[1] if key[1] is not None else key[2], key.end(), end
        if text[end : end + 1] != ",":
            return
        at = end + 1


def _member_end(text: str, begin: int, stop: int) -> int:
    last = text.rfind("}'", begin, stop) if text.startswith("'{", begin) else -1
    try:
        end = read_value(text, begin)[1]
    except ValueError:
        end = -1
    behind = _behind(_SPACE, text, end) if end >= 0 else stop + 1
    whole = behind == stop or (behind < stop and text[behind] in ",}")
    if whole and (last < 0 or isinstance(read_arguments(text[begin:end]), dict)):
        return behind
    return last + 2 if last > begin else value_end(text, begin, stop)


def _behind(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _name_of(literal: str) -> str | None:
    """The name that a literal stands for; None where it is no text or blank."""
    try:
        value = read_whole(literal)
    except ValueError:
        return None
    return value if isinstance(value, str) and value.strip() else None
