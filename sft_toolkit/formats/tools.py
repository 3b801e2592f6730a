"""Tool declarations as data sets and APIs hold them, brought to one form: `{"type": "function", "function": {…}}`.

A list, one object, a mapping by name, JSON text of these, JSON texts in a list, or objects one after the other in a
text; wrapped (`function`, Amazon's `toolSpec`, Google's `functionDeclarations`) or flat.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from sft_toolkit.errors import RecordError
from sft_toolkit.formats.refusals import map_line, shown
from sft_toolkit.json_text import decode
from sft_toolkit.tool_calls.flat_parameters import as_schema, is_flat
from sft_toolkit.tool_calls.type_names import with_json_types

# Under these keys of a JSON Schema null is a value; under any other key it is padding that column storage left.
_NULL_IS_A_VALUE = frozenset({"const", "default", "example"})
_MAPPINGS_BY_NAME = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_VALUE_LISTS = frozenset({"enum", "examples"})
_SCHEMAS = ("input_schema", "inputSchema", "arguments")
_DECLARATIONS = ("functionDeclarations", "function_declarations")
_WRAPPERS = ("toolSpec", "tool_spec")
_UNREAD = f"{map_line('tools')} leaves them unread"
_stream = json.JSONDecoder(parse_float=Decimal)


def normalise_tools(given: Any) -> list[dict[str, Any]]:
    """Bring tools in any known form to one.

    Null keys that column storage added are dropped, nulls that the schema means (default, const, enum) are kept.
    Raises RecordError where there is no telling what the tools are.
    """
    return [_normalised(tool) for tool in _declarations(given)]


def _declarations(given: Any) -> Iterator[Any]:
    """Each declaration, in whatever list, text or mapping it stands."""
    if given is None:
        return
    if isinstance(given, str):
        for value in _values_in(given):
            yield from _declarations(value)
    elif isinstance(given, list):
        for tool in given:
            yield from _declarations(tool)
    elif not isinstance(given, dict):
        raise _bad(f"tools is {shown(given)}")
    elif (many := next((given[key] for key in _DECLARATIONS if given.get(key)), None)) is not None:
        yield from _declarations(many)
    elif (inner := next((given[key] for key in _WRAPPERS if given.get(key)), None)) is not None:
        yield from _declarations(inner)
    elif isinstance(given.get("name"), str) or isinstance(given.get("function"), dict | str):
        yield given
    else:
        yield from _by_name(given)


def _by_name(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The declarations of a mapping from names to them."""
    for name, tool in given.items():
        if tool is None:
            continue
        if not isinstance(tool, dict):
            raise _bad(f"a tool has no name: tools is an object whose {name} is {shown(tool)}, no declaration")
        if isinstance(tool.get("function"), dict):
            yield {**tool, "function": {"name": name, **tool["function"]}}
        else:
            yield {"name": name, **{key: value for key, value in tool.items() if key != "name" or value is not None}}


def _values_in(text: str) -> list[Any]:
    """The JSON values of a text, one or several with blanks or commas between them."""
    values, at = [], _behind_blanks(text, 0)
    while at < len(text):
        try:
            value, at = _stream.raw_decode(text, at)
        except (ValueError, RecursionError, ArithmeticError) as fault:
            why = "nested too deeply" if isinstance(fault, RecursionError) else str(fault)
            raise _bad(f"tools is text that is not JSON: {why}") from fault
        values.append(value)
        at = _behind_blanks(text, at)
    if any(isinstance(value, str) for value in values):
        raise _bad("a tool is text, no declaration")
    return values


def _behind_blanks(text: str, at: int) -> int:
    while at < len(text) and (text[at].isspace() or text[at] in ",;"):
        at += 1
    return at


def _normalised(tool: Any) -> dict[str, Any]:
    function, kind = tool.get("function"), tool.get("type")
    if isinstance(function, str) and "name" not in tool:
        function = {**{key: value for key, value in tool.items() if key not in ("function", "type")}, "name": function}
        outer: dict[str, Any] = {}
    elif function is None:
        outer, function = {}, tool
    else:
        outer = {key: value for key, value in tool.items() if key not in ("type", "function") and value is not None}
    if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
        raise _bad("a tool has no name")
    flat_type = {"type"} if function is tool and kind in ("function", "custom") else set()
    if function is not tool and kind not in (None, "function"):
        outer["source_type"] = kind
    return {
        "type": "function",
        "function": {
            key: _parameters(value, function["name"]) if key == "parameters" else value
            for key, value in _with_parameters(function).items()
            if value is not None and key not in flat_type
        },
        **outer,
    }


def _with_parameters(function: dict[str, Any]) -> dict[str, Any]:
    """The schema of the arguments under the name that it has here, if it has another and only that."""
    found = [name for name in _SCHEMAS if function.get(name) is not None]
    if len(found) != 1 or function.get("parameters") is not None:
        return function
    schema = function[found[0]]
    if isinstance(schema, dict) and schema.keys() == {"json"}:
        schema = schema["json"]
    return {
        "parameters" if key == found[0] else key: schema if key == found[0] else value
        for key, value in function.items()
        if key != "parameters"
    }


def _parameters(given: Any, name: str) -> Any:
    if isinstance(given, str):
        given = _decode(given, f"parameters of tool {name}") if given.strip() else {}
    cleaned = _without_padding(given)
    return with_json_types(as_schema(cleaned)) if isinstance(cleaned, dict) and is_flat(cleaned) else cleaned


def _without_padding(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_padding(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _cleaned(key, value) for key, value in schema.items() if value is not None or key in _NULL_IS_A_VALUE}


def _cleaned(key: str, value: Any) -> Any:
    if key in _NULL_IS_A_VALUE or key in _VALUE_LISTS:
        return value
    if key in _MAPPINGS_BY_NAME and isinstance(value, dict):
        return {name: _without_padding(schema) for name, schema in value.items() if schema is not None}
    return _without_padding(value)


def _decode(text: str, what: str) -> Any:
    try:
        return decode(text)
    except ValueError as fault:
        raise _bad(f"{what} is text that is not JSON: {fault}") from fault


def _bad(detail: str) -> RecordError:
    return RecordError("bad_tools", detail, _UNREAD)
