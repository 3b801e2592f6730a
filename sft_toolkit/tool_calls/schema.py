"""The tools that a conversation declares, compiled once per distinct declaration.

Validation is jsonschema-rs: it compares Decimals and integers of any size exactly. Retrieval is switched off, so that
only local references resolve, and `format` is an annotation, as JSON Schema has it since draft 2019-09.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from sft_toolkit.json_text import decode, encode
from sft_toolkit.tool_calls.bounded_validation import BoundedValidator
from sft_toolkit.tool_calls.compiling import DEEPEST, Compiled, compile_schema
from sft_toolkit.tool_calls.decode import is_deeper
from sft_toolkit.tool_calls.flat_parameters import as_schema, is_flat
from sft_toolkit.tool_calls.native_validation import TooMuchWork, ran_away, sentence, weight
from sft_toolkit.tool_calls.subschemas import ALWAYS, applicable, pointer
from sft_toolkit.tool_calls.type_names import with_json_types

_TOOLS_CACHED = 4096
_TOOL_LISTS_CACHED = 512
_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")
_TOO_DEEP = "nested too deeply"
_NATIVE_WORK = 200_000
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
        self.schema = _schema_of(function)
        self.is_suspect = "required" in function
        """True where `required` stands beside `parameters` and so is never enforced."""

    def rejection(self, arguments: dict[str, Any]) -> Rejection | None:
        """What the schema rejects, or None. Raises BrokenSchema where it cannot tell, or not within bounds."""
        compiled = self._compiled
        if compiled is None:
            raise BrokenSchema(self.name)
        found = self._error(compiled, arguments)
        if found is None and compiled.is_partial:
            raise BrokenSchema(self.name)
        return found

    def _error(self, compiled: Compiled, arguments: dict[str, Any]) -> Rejection | None:
        if compiled.size is None or compiled.size * weight(arguments, _NATIVE_WORK // compiled.size) > _NATIVE_WORK:
            try:
                error = self._bounded.error(arguments)
            except TooMuchWork as fault:
                raise BrokenSchema(self.name) from fault
            return None if error is None else Rejection(*error)
        if compiled.validator.is_valid(arguments):
            return None
        first = next(compiled.validator.iter_errors(arguments))
        if ran_away(first):
            raise BrokenSchema(self.name)
        return Rejection(pointer(first.instance_path), sentence(first))

    def undeclared(self, arguments: dict[str, Any]) -> list[str]:
        """Top-level arguments that a schema which says nothing about additional properties does not name."""
        if self._is_open or arguments.keys() <= self._properties.keys():
            return []
        return [name for name in arguments if name not in self._properties]

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Top-level defaults other than null; none of a schema that is broken."""
        if not self._is_whole:
            return {}
        return {
            name: default
            for schema in applicable(self.schema, self.schema, ALWAYS)
            for name, declared in _named(schema)
            if (default := _default(declared, self.schema)) is not None
        }

    def treats_null_as_missing(self, name: str) -> bool:
        """True for a top-level argument that may be null and has no default, or the default null."""
        if not self._is_whole or name not in self._properties or name in self.defaults:
            return False
        if self._compiled is not None and self._compiled.validator is not None:
            errors = self._compiled.validator.iter_errors({name: None})
            return not any(error.instance_path[:1] == [name] for error in errors)
        declared = (dict(_named(schema)).get(name) for schema in applicable(self.schema, self.schema, ALWAYS))
        try:
            return all(self._bounded.error_at(schema, None) is None for schema in declared if schema is not None)
        except TooMuchWork:
            return False

    @cached_property
    def has_unordered_arrays(self) -> bool:
        """True where some array may be declared `uniqueItems`, so that its order does not matter."""
        return self._is_whole and b'"uniqueItems":true' in encode(self.schema)

    @cached_property
    def _compiled(self) -> Compiled | None:
        return compile_schema(self.schema)

    @cached_property
    def _bounded(self) -> BoundedValidator:
        return BoundedValidator(self._compiled.schema if self._compiled is not None else self.schema)

    @property
    def _is_whole(self) -> bool:
        return self._compiled is not None and not self._compiled.is_partial

    @cached_property
    def _properties(self) -> dict[str, Any]:
        """Every top-level property that some part of the schema names."""
        return {name: declared for schema in applicable(self.schema, self.schema) for name, declared in _named(schema)}

    @cached_property
    def _is_open(self) -> bool:
        if not self._is_whole:
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


def _schema_of(function: Mapping[str, Any]) -> Any:
    """The schema of the arguments, under the name that OpenAI, Anthropic or MCP gives it; none too deep to walk."""
    given: Any = next((function[name] for name in _SCHEMA_KEYS if function.get(name)), {})
    if is_deeper(given, DEEPEST):
        return _TOO_DEEP
    return with_json_types(as_schema(given) if is_flat(given) else given)


def _named(schema: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    properties = schema.get("properties")
    return properties.items() if isinstance(properties, dict) else ()


def _default(declared: Any, root: Any) -> Any:
    """The default of a property: its own, else that of what it refers to."""
    parts = applicable(declared, root, ALWAYS)
    return next((part["default"] for part in parts if "default" in part), None)
