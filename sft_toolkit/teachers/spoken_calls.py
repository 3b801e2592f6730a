"""The calls that a decoded value is, by its keys, however a checker names them.

    {"tool": "f", "args": {…}}   {"f": {…}, "g": {…}}       the name under another key, or as the key
    {"tool": "f", "city": …}                                arguments beside the name
    {"calls": […]}   {"tools": {"f": {…}}}                  any of these in a list or under a key

Nothing but declared tools is called so, and a tool's declaration is no call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sft_toolkit.formats.dialects import Call
from sft_toolkit.formats.dialects.bare_calls import is_schema

Declared = Mapping[str, frozenset[str]]
"""The arguments that each declared tool has, by its name."""

_NAME_KEYS = ("tool", "tool_name", "function", "function_name", "action", "name", "call", "werkzeug")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "params", "input", "tool_input", "action_input", "kwargs")
_OF_THE_CALL = frozenset(["id", "type", "call_id", "tool_call_id", "index", *_NAME_KEYS])
_LIST_KEYS = frozenset(
    {"calls", "tool_calls", "function_calls", "tools", "functions", "actions"}
    | {"call", "tool_call", "function_call", "function", "tool"}
)
_NAMESPACES = ("functions.", "tools.", "default_api.")
_DEEPEST = 6


def declared_arguments(tools: Sequence[dict[str, Any]]) -> Declared:
    """The names of the arguments of each tool; none for a tool that declares none."""
    functions = [tool.get("function", tool) for tool in tools]
    return {
        function["name"]: frozenset((function.get("parameters") or {}).get("properties") or ())
        for function in functions
        if isinstance(function.get("name"), str)
    }


def spoken_calls(value: Any, declared: Declared) -> list[Call]:
    """The calls of declared tools that a value makes, in its order; none where it is something else."""
    return list(_calls(value, declared, _DEEPEST))


def says_no_call(value: Any) -> bool:
    """Whether a value is an answer that calls nothing: `{"calls": []}`."""
    return (
        isinstance(value, dict)
        and len(value) == 1
        and any(_plain(key) in _LIST_KEYS and value[key] == [] for key in value)
    )


def bare_name(name: str, names: Collection[str]) -> str:
    """`name` without a namespace that the declared tool has not."""
    without = next((name.removeprefix(space) for space in _NAMESPACES if name.startswith(space)), name)
    return without if name not in names and without in names else name


def _calls(value: Any, declared: Declared, levels: int) -> Iterator[Call]:
    if isinstance(value, list) and levels:
        for member in value:
            yield from _calls(member, declared, levels - 1)
    if not isinstance(value, dict) or not levels or is_schema(value):
        return
    plain = {_plain(key): member for key, member in value.items()}
    name = next((plain[key] for key in _NAME_KEYS if isinstance(plain.get(key), str)), None)
    if name is not None and bare_name(name, declared) in declared:
        yield from _named(bare_name(name, declared), value, plain, declared)
    elif value and all(bare_name(key, declared) in declared for key in value):
        for key, member in value.items():
            if (arguments := _arguments(member)) is not None:
                yield Call(bare_name(key, declared), arguments)
    else:
        for key, member in plain.items():
            if key in _LIST_KEYS:
                yield from _calls(member, declared, levels - 1)


def _named(name: str, value: dict[str, Any], plain: dict[str, Any], declared: Declared) -> Iterator[Call]:
    key = next((key for key in _ARGUMENT_KEYS if key in plain), None)
    if key is None:
        beside = {key: member for key, member in value.items() if _plain(key) not in _OF_THE_CALL}
        if beside and beside.keys() <= declared[name]:
            yield Call(name, beside)
    elif (arguments := _arguments(plain[key])) is not None:
        yield Call(name, arguments)


def _arguments(value: Any) -> dict[str, Any] | str | None:
    """Arguments as an object or JSON text, from a list of single members too; None where a value is none."""
    if value is None:
        return {}
    if isinstance(value, list):
        if not all(isinstance(member, dict) and len(member) == 1 for member in value):
            return None
        value = {key: member for each in value for key, member in each.items()}
    is_declaration = is_schema(value) or (isinstance(value, dict) and {"description", "parameters"} <= value.keys())
    return value if isinstance(value, dict | str) and not is_declaration else None


def _plain(key: str) -> str:
    """A key as it is listed: `Action Input` is `action_input`."""
    return key.strip().lower().replace(" ", "_").replace("-", "_")
