"""Type names as Python code generators write them into tool schemas, brought to those of JSON Schema."""

from __future__ import annotations

from typing import Any

_JSON_TYPES: dict[str, str | None] = {
    **{name: name for name in ("string", "integer", "number", "boolean", "array", "object", "null")},
    **dict.fromkeys(("list", "tuple", "set"), "array"),
    **dict.fromkeys(("float", "double"), "number"),
    **dict.fromkeys(("none", "nonetype"), "null"),
    "str": "string",
    "int": "integer",
    "bool": "boolean",
    "dict": "object",
    "any": None,
}
_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_SCHEMAS = frozenset(
    {"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "additionalProperties", "propertyNames"}
    | {"unevaluatedProperties", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"}
)


def with_json_types(schema: Any) -> Any:
    """A copy of `schema` with `dict`, `float`, `tuple`, `List[int]` and the like mapped, `any` left unconstrained.

    Only places that hold schemas are touched: never an enum, a default or a property that is called "type". A name
    that nobody knows stays, so that compiling the schema reports it.
    """
    if isinstance(schema, list):
        return [with_json_types(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    mapped = {}
    for keyword, value in schema.items():
        if keyword == "type":
            value = _json_type(value)
            if value is None:
                continue
        elif keyword in _NAMED_SCHEMAS and isinstance(value, dict):
            value = {name: with_json_types(member) for name, member in value.items()}
        elif keyword in _SCHEMAS:
            value = with_json_types(value)
        mapped[keyword] = value
    return mapped


def _json_type(given: Any) -> Any:
    """The JSON Schema type or list of types; None where any value will do."""
    if isinstance(given, list):
        types = [_json_type(name) for name in given]
        return None if None in types else types
    if not isinstance(given, str):
        return given
    name = given.partition("[")[0].strip().lower()
    return _JSON_TYPES.get(name, given)
