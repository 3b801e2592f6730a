"""Types as people write them into tool declarations, in Python's manner or nearly so, brought to JSON Schema.

type     member { ("|" | " or ") member } { "," mark }          str | None, int or float
member   name [ "[" type { "," type } "]" ]                     List[int], Optional[str], Literal["a", "b"]
         member "[]" | ("list" | "array") " of " member         string[], list of strings
mark     whatever a docstring adds                              str, optional   int, default=5   str (optional)
"""

from __future__ import annotations

import ast
import re
from typing import Any

Schema = dict[str, Any]

_JSON_TYPES = {
    **{name: name for name in ("string", "integer", "number", "boolean", "array", "object", "null")},
    **dict.fromkeys(("str", "text"), "string"),
    "int": "integer",
    **dict.fromkeys(("float", "double"), "number"),
    "bool": "boolean",
    **dict.fromkeys(("list", "tuple", "set", "frozenset", "sequence", "iterable", "collection"), "array"),
    **dict.fromkeys(("dict", "mapping", "map"), "object"),
    **dict.fromkeys(("none", "nonetype"), "null"),
}
_OF_ITEMS = frozenset({"array", "list", "set", "frozenset", "sequence", "iterable", "collection"})
_MORE_THAN_A_TYPE = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if", "const"})
_ANNOTATIONS = ("default", "description", "title")
_LONGEST = 300
_MARK = re.compile(r"\(?\s*optional\s*\)?", re.IGNORECASE)
_ITEMS_OF = re.compile(r"(?:list|array) of (\w+?)s?", re.IGNORECASE)
_OR = re.compile(r"\s+or\s+", re.IGNORECASE)
_QUOTED = re.compile(r"""(["']).*?\1""")


def python_type(written: str) -> Schema | None:
    """The schema of a type, {} where any value will do; None for a type that nobody knows.

    A mark such as `optional` says that a value may be missing, not that it may be null.

    >>> python_type("Union[int, str]"), python_type("str, optional"), python_type("List[float]")
    ({'type': ['integer', 'string']}, {'type': 'string'}, {'type': 'array', 'items': {'type': 'number'}})
    """
    if len(written) > _LONGEST:
        return None
    if not written.strip():
        return {}
    head, *_ = _cut(_OR.sub(" | ", written), ",")
    return _member((head if head.strip().lower().startswith("optional[") else _MARK.sub("", head)).strip())


def or_null(schema: Schema) -> Schema:
    """The schema, with null allowed beside what it allows."""
    kind = schema.get("type")
    if not isinstance(kind, (str, list)) or schema.keys() & _MORE_THAN_A_TYPE:
        annotations = {key: schema[key] for key in _ANNOTATIONS if key in schema}
        allowed = {key: value for key, value in schema.items() if key not in _ANNOTATIONS}
        return {**annotations, "anyOf": [allowed, {"type": "null"}]} if allowed else schema
    kinds = [kind] if isinstance(kind, str) else kind
    with_null = {**schema, "type": kinds if "null" in kinds else [*kinds, "null"]}
    if "enum" in schema and None not in schema["enum"]:
        with_null["enum"] = [*schema["enum"], None]
    return with_null


def _member(text: str) -> Schema | None:
    members = _cut(text, "|")
    if len(members) > 1:
        return _either(members)
    if of := _ITEMS_OF.fullmatch(text):
        return _array(of[1])
    if text.endswith("[]"):
        return _array(text[:-2])
    opening, closing = ("[", "]") if "[" in text else ("<", ">")
    written, bracket, inside = text.partition(opening)
    name = written.strip().rpartition(".")[2].lower()
    inside = inside.rstrip().removesuffix(closing)
    inner = [part.strip() for part in _cut(inside, ",")] if bracket else []
    if name == "optional" and inner:
        schema = _member(inner[0])
        return None if schema is None else or_null(schema)
    if name == "union" and inner:
        return _either(inner)
    if name == "literal" and inner:
        return _literal(inside)
    if name in _OF_ITEMS and len(inner) == 1:
        return _array(inner[0])
    if name == "tuple" and len(inner) == 2 and inner[1] == "...":
        return _array(inner[0])
    if name == "any":
        return {}
    return {"type": _JSON_TYPES[name]} if name in _JSON_TYPES else None


def _array(of: str) -> Schema:
    items = _member(of.strip())
    return {"type": "array", "items": items} if items else {"type": "array"}


def _either(members: list[str]) -> Schema | None:
    """A list of types where each is one; else alternatives. A member that nobody knows allows anything."""
    schemas = [_member(member.strip()) for member in members]
    if any(not schema for schema in schemas):
        return {} if {} in schemas else None
    known = [schema for schema in schemas if schema]
    if all(schema.keys() == {"type"} for schema in known):
        kinds = [kind for schema in known for kind in _kinds(schema)]
        return {"type": list(dict.fromkeys(kinds))}
    return {"anyOf": known}


def _kinds(schema: Schema) -> list[str]:
    kind = schema["type"]
    return kind if isinstance(kind, list) else [kind]


def _literal(inside: str) -> Schema | None:
    try:
        return {"enum": list(ast.literal_eval(f"[{inside}]"))}
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _cut(text: str, at: str) -> list[str]:
    """Cut at a sign that stands in no brackets and in no quotes."""
    hidden = _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), text)
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(hidden):
        depth += (letter in "[(<") - (letter in "])>")
        if letter == at and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]
