"""Whether two tool calls are the same: equality of canonical forms, exact to the last decimal.

A canonical form is hashable, so that "the same" is an equivalence relation by construction and parallel calls compare
as multisets with a full matching.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any
from unicodedata import normalize

from sft_toolkit.conversation import ToolCall
from sft_toolkit.json_text import encode
from sft_toolkit.tool_calls.decode import decode_arguments
from sft_toolkit.tool_calls.schema import Tool, compile_tools
from sft_toolkit.tool_calls.subschemas import applicable, pointer

Call = ToolCall | Mapping[str, Any]
Tools = Sequence[Mapping[str, Any]]

_MISSING = ("missing",)


def same_call(a: Call, b: Call, tools: Tools) -> bool:
    """True where both call the same tool with the same arguments.

    A call is `{"name", "arguments"}` or a ToolCall; arguments are an object or JSON text. `tools` are the declared
    tools: their defaults are filled in and their `uniqueItems` arrays compare without order. Strings are exact after
    Unicode NFC, numbers equal by decimal value (16.2 = 16.20 = 1.62e1), a boolean or a string is never a number.

    >>> same_call({"name": "pay", "arguments": {"sum": 5}}, {"name": "pay", "arguments": '{"sum": 5.0}'}, [])
    True
    >>> same_call({"name": "pay", "arguments": {"sum": 5}}, {"name": "pay", "arguments": {"sum": "5"}}, [])
    False

    With a declaration, an argument that is left out equals its default:

    >>> pay = {"name": "pay", "parameters": {"type": "object", "properties": {"currency": {"default": "EUR"}}}}
    >>> same_call({"name": "pay", "arguments": {}}, {"name": "pay", "arguments": {"currency": "EUR"}}, [pay])
    True
    """
    return canonical(a, tools) == canonical(b, tools)


def same_calls(as_: Iterable[Call], bs: Iterable[Call], tools: Tools) -> bool:
    """True where two sets of parallel calls match one to one in some order; ids are ignored."""
    return Counter(canonical(call, tools) for call in as_) == Counter(canonical(call, tools) for call in bs)


def difference(a: Call, b: Call, tools: Tools) -> list[str]:
    """JSON pointers into the call where two calls differ, outermost first; empty exactly where `same_call` holds.

    Calls of two tools differ at "/name" alone. An unordered array differs as a whole.
    """
    (name, arguments), (other_name, others) = canonical(a, tools), canonical(b, tools)
    if name != other_name:
        return ["/name"]
    return [pointer(path) for path in _differing(arguments, others, ("arguments",))]


def canonical(call: Call, tools: Tools) -> tuple[str, Hashable]:
    """The form that two calls share exactly where they are the same call."""
    if isinstance(call, ToolCall):
        name, given = call.name, call.arguments
    else:
        name, given = call["name"], call.get("arguments")
    decoded = decode_arguments(given)
    if decoded.problem is not None:
        return name, ("undecoded", decoded.value if isinstance(decoded.value, str) else encode(decoded.value))
    return name, canonical_arguments(decoded.value, compile_tools(tools).get(name))


def canonical_arguments(arguments: dict[str, Any], tool: Tool | None) -> Hashable:
    """Canonical form of decoded arguments of a call to `tool` (None where it is not declared)."""
    if tool is None:
        return _canonical(arguments, None, None)
    shape = tool.schema if tool.has_unordered_arrays else None
    return _canonical(_with_defaults(arguments, tool), shape, shape)


def _with_defaults(arguments: dict[str, Any], tool: Tool) -> dict[str, Any]:
    given = {
        name: value for name, value in arguments.items() if value is not None or not tool.treats_null_as_missing(name)
    }
    return {**tool.defaults, **given}


def _canonical(value: Any, schema: Any, root: Any) -> Hashable:
    """`schema` is what is known of this value inside `root`; None where nothing in it could be unordered."""
    if isinstance(value, str):
        return _nfc(value)
    if isinstance(value, bool):
        return ("boolean", value)
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, (float, Decimal)):
        number = Decimal(repr(value)) if isinstance(value, float) else value
        return number if number.is_finite() else ("number", str(number))
    known = [] if schema is None else list(applicable(schema, root))
    if isinstance(value, Mapping):
        names = _composed(value)
        return (
            "object",
            frozenset((names[name], _canonical(value[name], _member_schema(name, known), root)) for name in value),
        )
    items = tuple(_canonical(item, _item_schema(index, known), root) for index, item in enumerate(value))
    if any(schema.get("uniqueItems") is True for schema in known):
        return ("unordered", frozenset(Counter(items).items()))
    return ("array", items)


def _composed(names: Iterable[str]) -> dict[str, str]:
    """Each name's NFC form. Names that would fall together stay apart as they are."""
    composed = {name: _nfc(name) for name in names}
    return composed if len(set(composed.values())) == len(composed) else {name: name for name in composed}


def _member_schema(name: str, known: list[dict[str, Any]]) -> Any:
    if not known:
        return None
    declared = [properties[name] for schema in known if name in (properties := _properties(schema))]
    return _all_of(declared or [schema.get("additionalProperties") for schema in known])


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _item_schema(index: int, known: list[dict[str, Any]]) -> Any:
    return _all_of([_items_at(index, schema) for schema in known]) if known else None


def _items_at(index: int, schema: dict[str, Any]) -> Any:
    for positional in (schema.get("prefixItems"), schema.get("items")):
        if isinstance(positional, list) and index < len(positional):
            return positional[index]
    return schema.get("items")


def _all_of(schemas: list[Any]) -> Any:
    found = [schema for schema in schemas if isinstance(schema, dict)]
    return {"allOf": found} if found else None


def _nfc(text: str) -> str:
    return text if text.isascii() else normalize("NFC", text)


def _differing(a: Any, b: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if a == b:
        return
    kind = a[0] if isinstance(a, tuple) and isinstance(b, tuple) and a[0] == b[0] else None
    if kind == "object":
        members, others = dict(a[1]), dict(b[1])
        for name in sorted(members.keys() | others.keys()):
            yield from _differing(members.get(name, _MISSING), others.get(name, _MISSING), (*path, name))
    elif kind == "array" and len(a[1]) == len(b[1]):
        for index, (item, other) in enumerate(zip(a[1], b[1], strict=True)):
            yield from _differing(item, other, (*path, index))
    else:
        yield path
