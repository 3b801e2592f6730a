"""Paths into a record: a column by its name, or keys and indexes joined by dots; `*` is every element of a list.

    path  = part *("." part)
    part  = key / index / "*"

A key may hold dots and blanks itself: at each object the longest run of parts that is one of its keys is taken, so
that a column of the path's exact name comes first. JSON text on the way is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sft_toolkit.json_text import decode

EVERY = "*"


class PathError(LookupError):
    """The record lacks what a path names; the message says what is missing where."""


@dataclass(frozen=True, slots=True)
class Place:
    """A value that a path leads to; `indexes` says which elements were taken for its stars, in order."""

    indexes: tuple[int, ...]
    value: Any


def places(record: dict[str, Any], path: str) -> list[Place]:
    """What the path leads to: one value, or, with a star, one for each element.

    What is null on the way is null at its end, and no element for a star. Raises PathError for what is not there.
    """
    return list(_walk(record, path.split("."), path, ()))


def split_column(record: dict[str, Any], path: str) -> tuple[str, list[str]]:
    """The column that a path begins with and the parts after it. Raises PathError where the record has none."""
    parts = path.split(".")
    count = _parts_of_key(record, parts)
    if count == 0:
        raise PathError(f"there is no column {parts[0]}")
    return ".".join(parts[:count]), parts[count:]


def narrowed(value: Any, parts: list[str], indexes: tuple[int, ...]) -> Any:
    """A copy of a column's value in which each list under a star is replaced by its element of that index."""
    if not indexes or not parts:
        return value
    value = opened(value)
    if isinstance(value, dict):
        count = _parts_of_key(value, parts)
        key = ".".join(parts[:count])
        return {**value, key: narrowed(value[key], parts[count:], indexes)}
    if parts[0] == EVERY:
        return narrowed(value[indexes[0]], parts[1:], indexes[1:])
    place = int(parts[0])
    return [*value[:place], narrowed(value[place], parts[1:], indexes), *value[place + 1 :]]


def opened(value: Any) -> Any:
    """The list or object that a text holds as JSON; any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return decode(value)
        except ValueError:
            return value
    return value


def _walk(value: Any, parts: list[str], path: str, indexes: tuple[int, ...]) -> Iterator[Place]:
    if not parts:
        yield Place(indexes, value)
        return
    value = opened(value)
    if value is None:
        if EVERY not in parts:
            yield Place(indexes, None)
    elif isinstance(value, list) and parts[0] == EVERY:
        for index, element in enumerate(value):
            yield from _walk(element, parts[1:], path, (*indexes, index))
    else:
        count = _parts_of_key(value, parts) if isinstance(value, dict) else 1
        if count == 0:
            raise PathError(f"{path}: there is no {parts[0]}")
        inner = value[".".join(parts[:count])] if isinstance(value, dict) else _element(value, parts[0], path)
        yield from _walk(inner, parts[count:], path, indexes)


def _element(value: Any, part: str, path: str) -> Any:
    if not isinstance(value, list):
        raise PathError(f"{path}: {part} is looked for inside {_kind(value)}")
    if not (part.isascii() and part.isdigit()):
        raise PathError(f"{path}: {part} is looked for inside a list, which has numbers from 0, or * for each")
    if len(part) > 9 or int(part) >= len(value):
        raise PathError(f"{path}: the list has {len(value)} elements, counted from 0")
    return value[int(part)]


def _parts_of_key(value: dict[str, Any], parts: list[str]) -> int:
    """How many of the parts are a key of the object, the longest such run; 0 where none is."""
    return next((count for count in range(len(parts), 0, -1) if ".".join(parts[:count]) in value), 0)


def _kind(value: Any) -> str:
    return "text" if isinstance(value, str) else "a number or boolean"
