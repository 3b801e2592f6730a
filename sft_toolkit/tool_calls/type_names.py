"""Schemas as code generators, OpenAPI and data sets write them, brought to JSON Schema 2020-12.

Types in Python's names, `nullable`, `required` as a flag of a property, and what is left of a keyword where a data set
pads its columns: nulls and empty lists.
"""

from __future__ import annotations

from typing import Any

from sft_toolkit.tool_calls.python_types import or_null, python_type
from sft_toolkit.tool_calls.subschemas import BY_NAME, IN_LISTS, SINGLE

_HOLDING_SCHEMAS = IN_LISTS | SINGLE | {"items"}
_EMPTY_MEANS_NOTHING = frozenset({"type", "enum", "allOf", "anyOf", "oneOf", "prefixItems"})
_NULL_IS_A_VALUE = frozenset({"default", "const"})
_NULLABLE = ("nullable", "x-nullable")
_EXCLUSIVE = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def with_json_types(schema: Any) -> Any:
    """A copy of `schema` with `dict`, `float`, `List[int]`, `str, optional` and the like mapped, `any` unconstrained.

    Only places that hold schemas are touched: never an enum, a default or a property that is called "type". A type
    that nobody knows stays, so that compiling the schema reports it.
    """
    return _Mapping(uses_draft_4_to_7=isinstance(schema, dict) and "draft-0" in str(schema.get("$schema"))).of(schema)


class _Mapping:
    """`uses_draft_4_to_7`: the schema names a draft in which lists of `items` and flags at bounds have a meaning."""

    def __init__(self, uses_draft_4_to_7: bool) -> None:
        self._old = uses_draft_4_to_7

    def of(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self.of(member) for member in schema]
        if not isinstance(schema, dict):
            return schema
        mapped: dict[str, Any] = {}
        for keyword, value in schema.items():
            if (value is None and keyword not in _NULL_IS_A_VALUE) or (value == [] and keyword in _EMPTY_MEANS_NOTHING):
                continue
            if keyword in BY_NAME and isinstance(value, dict):
                value = {name: self.of(member) for name, member in value.items() if member is not None}
            elif keyword in _HOLDING_SCHEMAS:
                value = self.of(value)
            mapped[keyword] = value
        _map_type(mapped)
        _lift_required(mapped)
        if not self._old:
            _map_older_forms(mapped)
        if any(mapped.pop(key, None) is True for key in _NULLABLE if key in mapped):
            mapped = or_null(mapped)
        return mapped


def _map_type(schema: dict[str, Any]) -> None:
    """What a type says beyond a JSON type gives way to a keyword that stands beside it."""
    given = schema.get("type")
    names = [name for name in (given if isinstance(given, list) else [given]) if isinstance(name, str)]
    if not names or (isinstance(given, list) and len(names) < len(given)):
        return
    known = python_type(" | ".join(names))
    if known is None:
        return
    del schema["type"]
    for keyword, value in known.items():
        if keyword == "anyOf" and "anyOf" in schema:
            schema["allOf"] = [*schema.get("allOf", []), {"anyOf": value}]
        else:
            schema.setdefault(keyword, value)


def _lift_required(schema: dict[str, Any]) -> None:
    """`required: true` in a property (JSON Schema draft 3) names it in the list of its object."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    flagged = {
        name: declared.pop("required")
        for name, declared in properties.items()
        if isinstance(declared, dict) and isinstance(declared.get("required"), bool)
    }
    listed = schema.get("required")
    if any(flagged.values()) and (listed is None or isinstance(listed, list)):
        named = [name for name, is_required in flagged.items() if is_required]
        schema["required"] = list(dict.fromkeys([*(listed or []), *named]))


def _map_older_forms(schema: dict[str, Any]) -> None:
    """What OpenAPI 3.0 and older drafts write without saying so: a flag at a bound, a list of items by position."""
    for exclusive, bound in _EXCLUSIVE.items():
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and bound in schema:
            schema[exclusive] = schema.pop(bound)
    if isinstance(schema.get("items"), list):
        schema["prefixItems"] = schema.pop("items")
        if "additionalItems" in schema:
            schema["items"] = schema.pop("additionalItems")
