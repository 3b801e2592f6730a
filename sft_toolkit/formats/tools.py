"""Tool declarations as data sets hold them, brought to one form: `{"type": "function", "function": {…}}`."""

from __future__ import annotations

from typing import Any

from sft_toolkit.errors import RecordError
from sft_toolkit.json_text import decode

# Under these keys of a JSON Schema null is a value; under any other key it is padding that column storage left.
_NULL_IS_A_VALUE = frozenset({"const", "default", "example"})
_MAPPINGS_BY_NAME = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_SCHEMAS = ("input_schema", "inputSchema")
_VALUE_LISTS = frozenset({"enum", "examples"})


def normalise_tools(given: Any) -> list[dict[str, Any]]:
    """Bring tools to one form: a list or its JSON text, wrapped or flat, parameters as object or JSON text.

    Parameters may also be called `input_schema` (Anthropic) or `inputSchema` (MCP).
    Null keys that column storage added are dropped, nulls that the schema means (default, const, enum) are kept.
    Raises RecordError where there is no telling what the tools are.
    """
    if isinstance(given, str):
        given = _decode(given, "tools") if given.strip() else None
    if given is None:
        return []
    if isinstance(given, dict):
        given = [given]
    if not isinstance(given, list):
        raise RecordError("bad_tools", "tools is neither a list nor JSON text of a list")
    return [_normalise_tool(tool) for tool in given]


def _normalise_tool(tool: Any) -> dict[str, Any]:
    if not isinstance(tool, dict):
        raise RecordError("bad_tools", "a tool is not an object")
    function = tool.get("function")
    if function is None:
        outer, function = {}, tool
    else:
        outer = {key: value for key, value in tool.items() if key not in ("type", "function") and value is not None}
    if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
        raise RecordError("bad_tools", "a tool has no name")
    flat_type = {"type"} if function is tool and tool.get("type") == "function" else set()
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
    return {"parameters" if key == found[0] else key: value for key, value in function.items() if key != "parameters"}


def _parameters(given: Any, name: str) -> Any:
    if isinstance(given, str):
        given = _decode(given, f"parameters of tool {name}") if given.strip() else {}
    return _without_padding(given)


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
        raise RecordError("bad_tools", f"{what} is text that is not JSON: {fault}") from fault
