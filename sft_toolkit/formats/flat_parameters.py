"""Parameters of a tool as a flat object, as xLAM and others write them, brought to a JSON Schema.

    {"city": {"type": "str", "description": "City"}, "unit": {"type": "str, optional", "default": "C"}}

Types are Python's: a name, `List[int]`, `Optional[str]`, `Union[int, str]`, `int | None`, `Literal["a", "b"]`, with
`, optional` or `, default=…` behind it.
"""

from __future__ import annotations

import ast
from typing import Any

from sft_toolkit.tool_calls.type_names import with_json_types

_MARK = "optional"
_ARRAYS = frozenset({"list", "tuple", "set", "sequence", "iterable", "array"})


def is_flat(parameters: dict[str, Any]) -> bool:
    """Whether every value is an object and the whole no schema: there `type` is text and `properties` hold schemas."""
    if not parameters or not all(isinstance(value, dict) for value in parameters.values()):
        return False
    properties = parameters.get("properties")
    is_schema = properties is not None and not isinstance(properties.get("type"), str)
    return not is_schema and not any(key.startswith("$") for key in parameters)


def as_schema(parameters: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of flat parameters.

    Required is what its own flag says, or else what has no default and is not optional by its type.
    """
    properties, required = {}, []
    for name, given in parameters.items():
        flag = given.get("required")
        written = given.get("type")
        schema, optional = python_type(written) if isinstance(written, str) else ({}, False)
        rest = {
            key: value
            for key, value in given.items()
            if key != "type" and not (key == "required" and isinstance(flag, bool))
        }
        properties[name] = {**rest, **schema} if isinstance(written, str) else rest
        if flag if isinstance(flag, bool) else not optional and "default" not in given:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def python_type(written: str) -> tuple[dict[str, Any], bool]:
    """The schema of a type as Python writes it, and whether it says that a value may be missing."""
    head, *marks = _split(written, ",")
    optional = any(mark.strip().casefold().startswith((_MARK, "default")) for mark in marks)
    schema, may_be_none = _schema(head.strip())
    return schema, optional or may_be_none


def _schema(text: str) -> tuple[dict[str, Any], bool]:
    members = [member.strip() for member in _split(text, "|")]
    name, bracket, inside = text.partition("[")
    written = name.strip().rpartition(".")[2]
    name = written.casefold()
    inner = [part.strip() for part in _split(inside.rstrip().removesuffix("]"), ",")] if bracket else []
    if name == _MARK and inner and len(members) == 1:
        return _schema(inner[0])[0], True
    if len(members) > 1 or (name == "union" and inner):
        return _either(members if len(members) > 1 else inner)
    if name == "literal" and inner:
        return _literal(text, inside), False
    if name in _ARRAYS:
        items = _schema(inner[0])[0] if inner and inner[0] not in ("", "...") else {}
        return {"type": "array", **({"items": items} if items else {})}, False
    return with_json_types({"type": written}), False


def _either(members: list[str]) -> tuple[dict[str, Any], bool]:
    schemas = [_schema(member) for member in members if member.casefold() not in ("none", "nonetype")]
    optional = len(schemas) < len(members) or any(may_be_none for _, may_be_none in schemas)
    kinds = list(dict.fromkeys(schema.get("type") for schema, _ in schemas if schema.keys() == {"type"}))
    if len(schemas) == 1:
        return schemas[0][0], optional
    if len(kinds) == len(schemas):
        return {"type": kinds}, optional
    return {"anyOf": [schema for schema, _ in schemas]}, optional


def _literal(text: str, inside: str) -> dict[str, Any]:
    try:
        return {"enum": list(ast.literal_eval(f"[{inside.rstrip().removesuffix(']')}]"))}
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {"type": text}


def _split(text: str, at: str) -> list[str]:
    """Cut at a sign that stands in no brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "[(") - (letter in "])")
        if letter == at and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]
