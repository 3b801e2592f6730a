"""The tools that a conversation declares, compiled once per distinct declaration.

Validation is jsonschema-rs: it compares Decimals and integers of any size exactly. Retrieval is switched off, so that
only local references resolve, and `format` is an annotation, as JSON Schema has it since draft 2019-09.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import jsonschema_rs

from sft_toolkit.json_text import decode, encode
from sft_toolkit.tool_calls.subschemas import ALWAYS, applicable, pointer
from sft_toolkit.tool_calls.type_names import with_json_types

_TOOLS_CACHED = 4096
_TOOL_LISTS_CACHED = 512
_OPENING_KEYWORDS = ("additionalProperties", "unevaluatedProperties", "patternProperties")


class BrokenSchema(Exception):
    """The declared schema cannot be used, so that nothing can be said about the arguments."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """What is wrong with arguments: where (a JSON pointer, "" for the whole) and a sentence for a person."""

    path: str
    message: str


class Tool:
    """One declared tool. What its schema implies is worked out when first asked for."""

    def __init__(self, name: str, function: Mapping[str, Any]) -> None:
        self.name = name
        self.schema = with_json_types(function.get("parameters") or {})
        self.is_suspect = "required" in function
        """True where `required` stands beside `parameters` and so is never enforced."""

    def rejection(self, arguments: dict[str, Any]) -> Rejection | None:
        """What the schema rejects, or None. Raises BrokenSchema."""
        validator = self._validator
        if validator is None:
            raise BrokenSchema(self.name)
        if validator.is_valid(arguments):
            return None
        error = next(validator.iter_errors(arguments))
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.BacktrackLimitExceeded):
            raise BrokenSchema(self.name)
        return Rejection(pointer(error.instance_path), _sentence(error))

    def undeclared(self, arguments: dict[str, Any]) -> list[str]:
        """Top-level arguments that a schema which says nothing about additional properties does not name."""
        if self._is_open or arguments.keys() <= self._properties.keys():
            return []
        return [name for name in arguments if name not in self._properties]

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Top-level defaults other than null; none of a schema that is broken."""
        if self._validator is None:
            return {}
        return {
            name: default
            for schema in applicable(self.schema, self.schema, ALWAYS)
            for name, declared in _named(schema)
            if (default := _default(declared, self.schema)) is not None
        }

    def treats_null_as_missing(self, name: str) -> bool:
        """True for a top-level argument that may be null and has no default, or the default null."""
        if self._validator is None or name not in self._properties or name in self.defaults:
            return False
        errors = self._validator.iter_errors({name: None})
        return not any(error.instance_path[:1] == [name] for error in errors)

    @cached_property
    def has_unordered_arrays(self) -> bool:
        """True where some array may be declared `uniqueItems`, so that its order does not matter."""
        return self._validator is not None and b'"uniqueItems":true' in encode(self.schema)

    @cached_property
    def _validator(self) -> Any:
        try:
            return jsonschema_rs.validator_for(self.schema, offline=True, validate_formats=False)
        except (ValueError, RecursionError):
            return None

    @cached_property
    def _properties(self) -> dict[str, Any]:
        """Every top-level property that some part of the schema names."""
        return {name: declared for schema in applicable(self.schema, self.schema) for name, declared in _named(schema)}

    @cached_property
    def _is_open(self) -> bool:
        if self._validator is None:
            return True
        schemas = list(applicable(self.schema, self.schema))
        states_it = any(keyword in schema for schema in schemas for keyword in _OPENING_KEYWORDS)
        return states_it or not any("properties" in schema for schema in schemas)


def compile_tools(tools: Sequence[Mapping[str, Any]]) -> dict[str, Tool]:
    """Tools by name, wrapped (`{"type": "function", "function": …}`) or flat; the first of two equal names counts.

    Compiled tools are kept per process, since millions of conversations share few of them.
    """
    return _compile_list(encode(tools)) if tools else {}


@lru_cache(maxsize=_TOOL_LISTS_CACHED)
def _compile_list(encoded: bytes) -> dict[str, Tool]:
    compiled: dict[str, Tool] = {}
    for declaration in decode(encoded):
        function = declaration.get("function", declaration)
        if "name" in function:
            compiled.setdefault(function["name"], _compile_tool(encode(function)))
    return compiled


@lru_cache(maxsize=_TOOLS_CACHED)
def _compile_tool(encoded: bytes) -> Tool:
    function = decode(encoded)
    return Tool(function["name"], function)


def _named(schema: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    properties = schema.get("properties")
    return properties.items() if isinstance(properties, dict) else ()


def _default(declared: Any, root: Any) -> Any:
    """The default of a property: its own, else that of what it refers to."""
    parts = applicable(declared, root, ALWAYS)
    return next((part["default"] for part in parts if "default" in part), None)


def _sentence(error: Any) -> str:
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Required):
        return f"{error.kind.property} is required"
    return str(error.message)
