"""Does reasoning give a call away, where it should only explain why that call is due?

Whoever learns from such reasoning learns to write calls into its thoughts, and a checker who derives the call from it
has only copied it. A leak is markup of a call in any dialect, whole or not; an object, code or lines that hold the call
or most of its arguments, encoded too; a control token; and words that say the call was known beforehand.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from sft_toolkit.conversation import ToolCall
from sft_toolkit.formats.dialects import find_calls, find_objects
from sft_toolkit.formats.dialects.registry import MARKS
from sft_toolkit.formats.dialects.searching import OBJECT
from sft_toolkit.json_text import encode_text
from sft_toolkit.teachers.given_calls import says_given
from sft_toolkit.tool_calls.compare import canonical_arguments

Calls = Sequence[ToolCall]

_CONTROL_TOKEN = re.compile(
    r"""
      <[|｜][^<>\s]{1,60}[|｜]>                                                # <|im_end|>, <｜end▁of▁sentence｜>
    | </?(?:s|bos|eos|pad|start_of_turn|end_of_turn|tool_calls?|tool_response|tool_result|function_calls?|tools)>
    | <</?SYS>> | \[/?(?:INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|ARGS|CALL_ID)\]
    """,
    re.VERBOSE | re.IGNORECASE,
)
# After a space a bracket opens arguments only if it looks so: "wetter (das Werkzeug)" is prose.
_SPACED_ARGUMENTS = r"\s+\(\s*(?:[\"'\[{\d]|\w+\s*[=:])"
_CALLED = (
    rf"(?<!\w){{name}}(?:\(\s*[^)\s]|{_SPACED_ARGUMENTS.replace('{', '{{').replace('}', '}}')})",
    r"(?<!\w)(?:functions\.|to=(?:functions\.)?|(?:Action|Aktion|Tool)\s*:\s*){name}(?!\w)",  # Harmony, ReAct
    r"(?<!\w){name}[ \t]*:[ \t]*\n[ \t]+[\w-]+[ \t]*:",  # YAML
)
_NAME_KEYS = ("name", "tool", "function", "tool_name", "function_name", "action")
_SPACE_AND_QUOTES = re.compile(r"[\s\"'`\\]+")
_SEPARATOR = re.compile(r"[:=>|→]")
_BASE64 = re.compile(r"(?<![\w+/-])[A-Za-z0-9+/_-]{16,}")
_HEXADECIMAL = re.compile(r"(?<!\w)(?:[0-9a-fA-F]{2}[ :]?){16,}")
_ESCAPED = re.compile(r"\\u00([0-9a-fA-F]{2})")
_LONGEST_VALUE = 80


def leak_in(text: str, calls: Calls) -> str | None:
    """What `text` gives away of these calls, or of any call, in words; None where it gives away nothing.

    >>> leak_in('So {"city": "Oslo"} it is.', [ToolCall("weather", {"city": "Oslo"})])
    'the call as an object or as code'
    >>> leak_in("The city is Oslo, and the weather tool knows it.", [ToolCall("weather", {"city": "Oslo"})]) is None
    True
    """
    return next((kind for kind, holds in _DETECTORS.items() if holds(text, calls)), None)


def _holds_markup(text: str, _: Calls) -> bool:
    return MARKS.search(text) is not None


def _holds_control_token(text: str, _: Calls) -> bool:
    return _CONTROL_TOKEN.search(text) is not None


def _holds_call(text: str, calls: Calls) -> bool:
    """As an object with name and arguments, as an object that is mostly its arguments, or as code (`name(…`).

    Order of keys, spacing and the kind of quotes do not hide it. Arguments that are empty are no quotation.
    """
    names = {call.name for call in calls}
    if any(re.search(form.format(name=re.escape(name)), text) for name in names for form in _CALLED):
        return True
    if any(_holds_tuple(text, call) for call in calls):
        return True
    squeezed = _squeezed(text)
    if any(_holds_object(call.arguments) and _squeezed(_shown(call.arguments)) in squeezed for call in calls):
        return True
    if any(found.dialect != OBJECT or found.call.name in names for found in find_calls(text)):
        return True
    values = [value for found in find_objects(text) for value in _within(found.value)]
    if any(value.get(key) in names for value in values for key in _NAME_KEYS if isinstance(value.get(key), str)):
        return True
    return any(_shares(value, call.arguments) for value in values for call in calls)


def _holds_tuple(text: str, call: ToolCall) -> bool:
    """Name and a value side by side as in ("book_flight", "Berlin"), or the arguments as Python's dict(from_=…)."""
    for key, value in _leaves(call.arguments):
        pattern = _value_pattern(value)
        if pattern and re.search(rf"[\"']{re.escape(call.name)}[\"']\s*,\s*[\"'\[({{]*{pattern}(?!\w)", text):
            return True
        if re.search(rf"(?<!\w)dict\([^()]{{0,200}}?(?<!\w){re.escape(key)}_?\s*=", text):
            return True
    return False


def _shares(value: dict[str, Any], arguments: Any) -> bool:
    """True where more than half of an object are members of the arguments."""
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


def _holds_arguments(text: str, calls: Calls) -> bool:
    """Two of a call's arguments or more, each as `name: value`, `name = value`, `--name value`, in tags or columns.

    An only argument counts where it has a line of its own.
    """
    for call in calls:
        pairs = [(key, pattern) for key, value in _leaves(call.arguments) if (pattern := _value_pattern(value))]
        if sum(_is_assigned(text, key, pattern) for key, pattern in pairs) >= 2:
            return True
        if len(pairs) == 1:
            key, pattern = pairs[0]
            if re.search(rf"^\W*{re.escape(key)}\W*?[:=]\W*{pattern}\W*$", text, re.MULTILINE):
                return True
    return False


def _is_assigned(text: str, key: str, pattern: str) -> bool:
    assignment = rf"(?<!\w)(-{{0,2}}){re.escape(key)}(?!\w)((?:</?[\w:-]+>|[^\w\n]|\n){{0,14}}?){pattern}(?!\w)"
    return any(found[1] or _SEPARATOR.search(found[2]) for found in re.finditer(assignment, text))


def _leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """The named members of arguments, at any depth, that hold no others."""
    for members in _within(value):
        yield from ((key, member) for key, member in members.items() if not isinstance(member, dict | list))


def _value_pattern(value: Any) -> str:
    """A pattern for how people write a value; "" for what they would not recognise, as null and long texts."""
    if isinstance(value, bool):
        return "[Tt]rue" if value else "[Ff]alse"
    if isinstance(value, int | float | Decimal):
        return re.escape(str(value)).replace(r"\.", "[.,]")
    if isinstance(value, str) and value.strip():
        return re.escape(value.strip()[:_LONGEST_VALUE])
    return ""


def _holds_encoded(text: str, calls: Calls) -> bool:
    if any(len(call.name) > 3 and call.name[::-1] in text and call.name[::-1] != call.name for call in calls):
        return True
    found = (_holds_markup, _holds_call, _holds_arguments, _names)
    return any(holds(plain, calls) for plain in _decoded(text) for holds in found)


def _names(plain: str, calls: Calls) -> bool:
    """Whether what somebody took the trouble to encode names a tool that is called."""
    return any(call.name in plain for call in calls)


def _decoded(text: str) -> Iterator[str]:
    """What stands in a text in base64, hexadecimal digits, escapes of a URL, of HTML or of JSON."""
    for found in _BASE64.finditer(text):
        whole = found[0][: len(found[0]) // 4 * 4].translate({ord("-"): "+", ord("_"): "/"})
        try:
            yield base64.b64decode(whole).decode(errors="ignore")
        except binascii.Error:
            continue
    for found in _HEXADECIMAL.finditer(text):
        yield bytes.fromhex(re.sub(r"[ :]", "", found[0])).decode(errors="ignore")
    if "%7B" in text.upper() or "%22" in text:
        yield unquote(text)
    if "&quot;" in text or "&#" in text or "&lt;" in text:
        yield html.unescape(text)
    if _ESCAPED.search(text):
        yield _ESCAPED.sub(lambda escaped: chr(int(escaped[1], 16)), text)


def _says_given(text: str, _: Calls) -> bool:
    return says_given(text)


_DETECTORS: dict[str, Callable[[str, Calls], bool]] = {
    "markup of a call": _holds_markup,
    "a control token": _holds_control_token,
    "the call as an object or as code": _holds_call,
    "its arguments name by name": _holds_arguments,
    "the call in an encoding": _holds_encoded,
    "that the call was given": _says_given,
}
