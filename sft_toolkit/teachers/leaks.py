"""Does a text quote a tool call, where it should only explain why that call is due?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sft_toolkit.conversation import ToolCall
from sft_toolkit.formats.dialects import find_calls, find_objects
from sft_toolkit.formats.dialects.searching import OBJECT
from sft_toolkit.json_text import encode_text
from sft_toolkit.tool_calls.compare import canonical_arguments

# After a space a bracket opens arguments only if it looks so: "wetter (das Werkzeug)" is prose.
_SPACED_ARGUMENTS = r"\s+\(\s*(?:[\"'\[{\d]|\w+\s*[=:])"
_SPACE_AND_QUOTES = re.compile(r"[\s\"'`\\]+")


def quotes_call(text: str, call: ToolCall) -> bool:
    """True where `text` holds markup of any call, or this call as an object, as code (`name(…`), or by its arguments.

    An object quotes the arguments where it equals them, or where more than half of it are members of theirs. Order of
    keys, spacing and the kind of quotes do not hide it. Arguments that are empty are no quotation.
    """
    if re.search(rf"(?<!\w){re.escape(call.name)}(?:\(\s*[^)\s]|{_SPACED_ARGUMENTS})", text):
        return True
    if _holds_object(call.arguments) and _squeezed(_shown(call.arguments)) in _squeezed(text):
        return True
    if any(found.dialect != OBJECT or found.call.name == call.name for found in find_calls(text)):
        return True
    return any(_shares(value, call.arguments) for found in find_objects(text) for value in _within(found.value))


def _shares(value: dict[str, Any], arguments: Any) -> bool:
    if not isinstance(arguments, dict):
        return False
    shared = [key for key in value.keys() & arguments.keys() if _same(value[key], arguments[key])]
    return 2 * len(shared) > len(value)


def _same(a: Any, b: Any) -> bool:
    return canonical_arguments({"value": a}, None) == canonical_arguments({"value": b}, None)


def _within(value: Any) -> Iterator[dict[str, Any]]:
    """The objects in a decoded value, itself included."""
    if isinstance(value, dict):
        yield value
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _within(member)


def _holds_object(arguments: Any) -> bool:
    """False for no arguments, and for a bare word or number, which the reasoning may well name."""
    return "{" in arguments if isinstance(arguments, str) else bool(arguments)


def _shown(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else encode_text(arguments)


def _squeezed(text: str) -> str:
    return _SPACE_AND_QUOTES.sub("", text)
