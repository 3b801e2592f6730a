"""Tools that stand in the system text: Hermes' and Qwen's <tools> block, the lists of ToolACE and of glaive.

<tools> JSON </tools>                 one list, or one object a line; prose may name the empty tags before
… can invoke: JSON                    ToolACE
… Use them if required - JSON         glaive, objects one after the other
… functions if needed- JSON           glaive, its first version
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from sft_toolkit.errors import RecordError
from sft_toolkit.formats.tools import normalise_tools

_OPENING, _CLOSING = "<tools>", "</tools>"
_LEADS = ("can invoke:", "Use them if required -", "functions if needed-")
_BLANKS = re.compile(r"\s*")
_stream = json.JSONDecoder(parse_float=Decimal)


def tools_in_text(text: str) -> list[dict[str, Any]]:
    """The tools that a system text declares, [] where it declares none that can be read."""
    if _OPENING in text:
        at = 0
        while (begin := text.find(_OPENING, at)) >= 0 and (end := text.find(_CLOSING, begin)) >= 0:
            begin += len(_OPENING)
            if found := _declared(text[begin:end].strip()):
                return found
            at = begin
    for lead in _LEADS:
        place = text.find(lead)
        if place >= 0 and (found := _declared_values(text, place + len(lead))):
            return found
    return []


def _declared(text: str) -> list[dict[str, Any]]:
    """The declarations of a block, whose inner opening tags are prose."""
    text = text.rpartition(_OPENING)[2].strip()
    return _normalised(text) if text[:1] in ("{", "[") and text[:1] else []


def _declared_values(text: str, at: int) -> list[dict[str, Any]]:
    """The declarations of the JSON values that follow one another in prose from `at` on."""
    values: list[Any] = []
    while True:
        blanks = _BLANKS.match(text, at)
        at = blanks.end() if blanks else at
        if text[at : at + 1] not in ("{", "["):
            break
        try:
            value, at = _stream.raw_decode(text, at)
        except (ValueError, RecursionError, ArithmeticError):
            break
        values.append(value)
    return _normalised(values)


def _normalised(given: Any) -> list[dict[str, Any]]:
    try:
        return normalise_tools(given)
    except RecordError:
        return []
