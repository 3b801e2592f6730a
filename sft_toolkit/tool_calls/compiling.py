"""Schemas by strangers, compiled: an odd keyword is left out and the rest kept, where that can only let more pass."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from sft_toolkit.tool_calls.subschemas import BY_NAME, IN_LISTS, SINGLE, resolve

LARGE = 20_000
"""Subschemas, references written out, up to which native code may see a schema: it would expand all of them."""

DEEPEST = 200
"""Levels of nesting, and references from one to the next, up to which the same holds."""

_ODD_KEYWORDS = 64
_TURN_ROUND = frozenset({"not", "if", "oneOf", "contains"})
_DEFINITIONS = ("$defs", "definitions")
_NOT_FOLLOWED = frozenset({"$dynamicRef", "$recursiveRef", "$id", "id"})

Path = list[str | int]


@dataclass(frozen=True, slots=True)
class Compiled:
    """`is_partial`: keywords that nobody can read were left out of `schema`.

    `size` is the number of subschemas with each reference written out; None, like `validator`, where they are endless
    or more than LARGE.
    """

    schema: Any
    is_partial: bool
    size: int | None
    validator: Any


class _Odd(Exception):
    """Something in a schema that is no schema, at `path`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path


def compile_schema(schema: Any) -> Compiled | None:
    """None where the schema cannot be used at all."""
    current, is_partial = schema, False
    for _ in range(_ODD_KEYWORDS):
        try:
            size = expanded_size(current)
            return Compiled(current, is_partial, size, _native(current, size))
        except _Odd as odd:
            place, keyword, may_go = _place(odd.path)
            if not may_go or (odd.path[0] in _DEFINITIONS and _turns_round(current)):
                return None
            current, is_partial = _without(current, place, keyword), True
        except ValueError:
            return None
    return None


def expanded_size(schema: Any) -> int | None:
    """Number of subschemas, each local reference written out.

    None where a reference leads into itself or nowhere that can be followed, and where there are more than LARGE.
    """
    return _size(schema, schema, {}, 0)


def _native(schema: Any, size: int | None) -> Any:
    """The validator, or None. Raises _Odd, or ValueError where the whole is at fault."""
    try:
        if size is not None:
            return jsonschema_rs.validator_for(schema, offline=True, validate_formats=False)
        jsonschema_rs.meta.validate(schema)
        path = next(_dead_references(schema), None)
    except jsonschema_rs.ValidationError as fault:
        path = list(fault.instance_path) or next(_dead_references(schema), None)
        if path is None:
            raise ValueError(str(fault)) from fault
    if path is not None:
        raise _Odd(path)
    return None


def _size(schema: Any, root: Any, sizes: dict[int, int | None], depth: int) -> int | None:
    """Of one subschema; `sizes` are known ones by identity, None while they are being counted."""
    if not isinstance(schema, dict):
        return 1
    if id(schema) not in sizes:
        sizes[id(schema)] = None
        total = 1
        for child in _children(schema, root):
            size = _size(child, root, sizes, depth + 1) if depth < DEEPEST else None
            if size is None or total + size > LARGE:
                return None
            total += size
        sizes[id(schema)] = None if schema is not root and schema.keys() & _NOT_FOLLOWED else total
    return sizes[id(schema)]


def _children(schema: dict[str, Any], root: Any) -> Iterator[Any]:
    if isinstance(schema.get("$ref"), str):
        yield resolve(schema["$ref"], root)
    for keyword, value in schema.items():
        if keyword in BY_NAME and isinstance(value, dict):
            yield from value.values()
        elif keyword in IN_LISTS and isinstance(value, list):
            yield from value
        elif keyword in SINGLE or keyword == "items":
            yield value


def _dead_references(schema: Any) -> Iterator[Path]:
    """Paths of the references that lead nowhere inside the schema."""
    waiting: list[tuple[Path, Any]] = [([], schema)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str) and resolve(node["$ref"], schema) is None:
                yield [*path, "$ref"]
            waiting += [([*path, key], value) for key, value in node.items() if key not in ("enum", "const", "default")]
        elif isinstance(node, list):
            waiting += [([*path, index], value) for index, value in enumerate(node)]


def _place(path: Path) -> tuple[Path, str | int | None, bool]:
    """The innermost schema that `path` leads into, its keyword at fault, and whether to leave that out lets more pass.

    The keyword is None where the schema itself is at fault, being no schema.
    """
    at, lets_more_pass = 0, True
    while at < len(path):
        keyword, follower = path[at], path[at + 1 : at + 2]
        inside_list = keyword in (*IN_LISTS, "items") and bool(follower) and isinstance(follower[0], int)
        step = 2 if keyword in BY_NAME or inside_list else 1 if keyword in SINGLE or keyword == "items" else 0
        if step == 0 or at + step > len(path):
            return path[:at], keyword, lets_more_pass
        lets_more_pass &= keyword not in _TURN_ROUND
        at += step
    return path, None, lets_more_pass


def _without(schema: Any, place: Path, keyword: str | int | None) -> Any:
    """A copy, without the keyword of the schema at `place`, or with one in its stead that everything passes."""
    changed = copy.deepcopy(schema)
    *way, last = place if keyword is None else [*place, keyword]
    node = changed
    for part in way:
        node = node[part]
    if keyword is None:
        node[last] = {}
    else:
        del node[last]
    return changed


def _turns_round(node: Any) -> bool:
    """Whether any part of a schema stands under a keyword by which letting more pass lets less pass."""
    if isinstance(node, list):
        return any(map(_turns_round, node))
    return isinstance(node, dict) and (bool(node.keys() & _TURN_ROUND) or any(map(_turns_round, node.values())))
