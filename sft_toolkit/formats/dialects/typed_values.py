"""Values that stand in XML-like markup without quotes: which of them are text and which are JSON.

The declared schema of the argument decides: where it allows text and no other kind that the value could be, the value
stays as it is (04109); else it is read as JSON, else as a Python literal (True, None), as templates print it. Without
a declaration JSON is read as JSON.
"""

from __future__ import annotations

from typing import Any

from sft_toolkit.formats.dialects.literals import BOTH_WORDS, read_whole
from sft_toolkit.formats.dialects.markup import Tools
from sft_toolkit.json_text import decode_strictly
from sft_toolkit.tool_calls.type_names import with_json_types


def typed_value(text: str, name: str, argument: str, tools: Tools) -> Any:
    """The value of `argument` of the tool `name` that is written as `text`."""
    schemas = [with_json_types(schema) for schema in tools.schemas(name, argument)]
    allowed = {kind for schema in schemas for kind in _kinds(schema)}
    if allowed == {"string"} or any(text in _values(schema) for schema in schemas):
        return text
    try:
        value = read_whole(text, BOTH_WORDS) if allowed else decode_strictly(text)
    except (ValueError, RecursionError):
        return text
    return text if "string" in allowed and not _kinds_of(value) & allowed else value


def _kinds(schema: dict[str, Any]) -> list[str]:
    kinds = schema.get("type")
    named = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    return [kind for kind in named if isinstance(kind, str)] + (["null"] if schema.get("nullable") is True else [])


def _values(schema: dict[str, Any]) -> list[Any]:
    """What `enum` and `const` allow."""
    allowed = schema.get("enum")
    return [*(allowed if isinstance(allowed, list) else []), *([schema["const"]] if "const" in schema else [])]


def _kinds_of(value: Any) -> set[str]:
    if value is None:
        return {"null"}
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, (dict, list)):
        return {"object" if isinstance(value, dict) else "array"}
    return {"string"} if isinstance(value, str) else {"number", "integer"}


def without_line_breaks(value: str) -> str:
    """`value` without one line break at its beginning and one at its end."""
    value = value.removeprefix("\r\n") if value.startswith("\r\n") else value.removeprefix("\n")
    return value.removesuffix("\r\n") if value.endswith("\r\n") else value.removesuffix("\n")


def without_own_lines(value: str) -> str:
    """`value` without the line breaks around it, where one stands on both sides."""
    shorter = without_line_breaks(value)
    return shorter if value[:1] in ("\n", "\r") and value[-1:] == "\n" and value != "\n" else value
