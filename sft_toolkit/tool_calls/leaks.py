"""Does a text quote a tool call, where it should only explain why that call is due?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sft_toolkit.conversation import ToolCall
from sft_toolkit.json_text import encode_text
from sft_toolkit.tool_calls.compare import canonical_arguments
from sft_toolkit.tool_calls.decode import MAX_DEPTH, is_deeper

_DECODER = json.JSONDecoder()
# After a space a bracket opens arguments only if it looks so: "wetter (das Werkzeug)" is prose.
_SPACED_ARGUMENTS = r"\s+\(\s*(?:[\"'\[{\d]|\w+\s*[=:])"
_SPACE_AND_QUOTES = re.compile(r"[\s\"'`\\]+")


def quotes_call(text: str, call: ToolCall) -> bool:
    """True where `text` holds the call as JSON, as code (`name(…`), or its arguments as an object.

    Order of keys, spacing and the kind of quotes do not hide it. Arguments that are empty are no quotation.
    """
    if re.search(rf"(?<!\w){re.escape(call.name)}(?:\(\s*[^)\s]|{_SPACED_ARGUMENTS})", text):
        return True
    if _holds_object(call.arguments) and _squeezed(_shown(call.arguments)) in _squeezed(text):
        return True
    wanted = canonical_arguments(call.arguments, None)
    for found in (*_objects(text), *_objects(text.replace("'", '"'))):
        if found.get("name") == call.name and ("arguments" in found or "parameters" in found):
            return True
        if found and canonical_arguments(found, None) == wanted:
            return True
    return False


def _holds_object(arguments: Any) -> bool:
    """False for no arguments, and for a bare word or number, which the reasoning may well name."""
    return "{" in arguments if isinstance(arguments, str) else bool(arguments)


def _shown(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else encode_text(arguments)


def _squeezed(text: str) -> str:
    return _SPACE_AND_QUOTES.sub("", text)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every JSON object that begins somewhere in the text; none from where it nests as only a run-away model does."""
    for brace in re.finditer(r"\{", text):
        try:
            found, _ = _DECODER.raw_decode(text, brace.start())
        except RecursionError:
            return
        except ValueError:
            continue
        if isinstance(found, dict) and not is_deeper(found, MAX_DEPTH):
            yield found
