"""Finding one's way in a JSON Schema: local references, the subschemas that apply to a value, JSON pointers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords that hold schemas by name."""

IN_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords that hold lists of schemas; `items` may, in older drafts."""

SINGLE = frozenset(
    {"additionalItems", "unevaluatedItems", "contains", "additionalProperties", "propertyNames"}
    | {"unevaluatedProperties", "not", "if", "then", "else"}
)
"""Keywords that hold one schema, beside `items`."""

ALWAYS = ("allOf",)
_INDEX = re.compile("0|[1-9][0-9]{0,8}")
PERHAPS = ("allOf", "anyOf", "oneOf", "then", "else")


def applicable(schema: Any, root: Any, through: tuple[str, ...] = PERHAPS) -> Iterator[dict[str, Any]]:
    """Yield `schema` and every schema that applies to the same value by a local `$ref` or a keyword of `through`.

    A reference that leads nowhere or into itself adds nothing.
    """
    seen: set[int] = set()
    waiting = [schema]
    while waiting:
        current = waiting.pop()
        if not isinstance(current, dict) or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current.get("$ref"), str):
            waiting.append(resolve(current["$ref"], root))
        for keyword in through:
            branches = current.get(keyword)
            waiting.extend(branches if isinstance(branches, list) else [branches])


def resolve(reference: str, root: Any) -> Any:
    """The schema under a local reference such as `#/$defs/Period`, or None (RFC 6901, a URI fragment; no anchors)."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    node = root
    for part in unquote(reference[1:]).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict):
            node = node.get(key)
        elif isinstance(node, list) and _INDEX.fullmatch(key) and int(key) < len(node):
            node = node[int(key)]
        else:
            return None
    return node


def pointer(parts: Iterable[str | int]) -> str:
    """A JSON pointer: ["items", 0, "a/b"] is /items/0/a~1b (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
