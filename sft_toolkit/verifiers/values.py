"""`json` and `calls`: values compared as values, calls as `same_call` does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import xxhash

from sft_toolkit.conversation import ToolCall
from sft_toolkit.errors import RecordError
from sft_toolkit.formats.dialects.reading import read_call_text
from sft_toolkit.json_text import decode, encode_text, strict_decoder
from sft_toolkit.tool_calls.compare import canonical, canonical_arguments
from sft_toolkit.verifiers.verdicts import NO_ANSWER, RIGHT, UNDECIDED, WRONG, Attempt, Verdict

_FENCE = re.compile(r"```[\w+-]*[ \t]*\n(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[{\[]")
_MISSING = object()
_LONGEST_SCALAR = 10_000


@dataclass(frozen=True)
class JsonVerifier:
    """The last JSON value of an answer: order of keys is free, numbers equal by value, text is no number."""

    name: ClassVar[str] = "json"

    def verify(self, attempt: Attempt) -> Verdict:
        value = _last_value(attempt.answer)
        if value is _MISSING:
            return Verdict(NO_ANSWER, None, "no_json")
        same = _form(value) == _form(attempt.key)
        return Verdict(RIGHT if same else WRONG, encode_text(value), None, _digest(_form(value)))


def _form(value: Any) -> Any:
    return canonical_arguments({"value": value}, None)


def _digest(form: Any) -> str:
    """Equal for equal values, whatever the order of their members."""
    return xxhash.xxh3_64_hexdigest(_ordered(form).encode())


def _ordered(form: Any) -> str:
    if isinstance(form, tuple):
        return f"({','.join(map(_ordered, form))})"
    if isinstance(form, frozenset):
        return f"{{{','.join(sorted(map(_ordered, form)))}}}"
    return (
        repr(form)
        if isinstance(form, str | bool) or form is None
        else f"n{form.normalize() if hasattr(form, 'normalize') else form}"
    )


def _last_value(text: str) -> Any:
    whole = _parsed(text.strip()) if len(text) < _LONGEST_SCALAR else _MISSING
    if whole is not _MISSING:
        return whole
    for fenced in reversed(_FENCE.findall(text)):
        value = _parsed(fenced.strip())
        if value is not _MISSING:
            return value
    return _last_bare(text)


def _last_bare(text: str) -> Any:
    found, at = _MISSING, 0
    while opening := _OPENING.search(text, at):
        try:
            found, at = strict_decoder.raw_decode(text, opening.start())
        except (ValueError, ArithmeticError, RecursionError):
            at = opening.end()
    return found


def _parsed(text: str) -> Any:
    try:
        value, end = strict_decoder.raw_decode(text)
    except (ValueError, ArithmeticError, RecursionError):
        return _MISSING
    return value if end == len(text) else _MISSING


@dataclass(frozen=True)
class CallsVerifier:
    """The set of parallel calls: any order, exact count, each equal as `same_call` says."""

    name: ClassVar[str] = "calls"

    def verify(self, attempt: Attempt) -> Verdict:
        given = list(attempt.tool_calls) or _written_calls(attempt)
        if not given:
            return Verdict(NO_ANSWER, None, "no_call")
        wanted = _wanted(attempt.key)
        shown = encode_text([_shown(call) for call in given])
        if wanted is None:
            return Verdict(UNDECIDED, shown, "reference_is_no_call")
        tools = list(attempt.tools)
        forms = Counter(canonical(call, tools) for call in given)
        same = forms == Counter(canonical(call, tools) for call in wanted)
        value = xxhash.xxh3_64_hexdigest("".join(sorted(map(_ordered, forms.elements()))).encode())
        return Verdict(RIGHT if same else WRONG, shown, None, value)


def _written_calls(attempt: Attempt) -> list[ToolCall]:
    """Calls that stand in the content as markup."""
    try:
        calls = read_call_text(attempt.answer, [dict(tool) for tool in attempt.tools])
    except RecordError:
        return []
    return [call.to_tool_call() for call in calls]


def _shown(call: ToolCall) -> dict[str, Any]:
    return {"name": call.name, "arguments": call.arguments}


def _wanted(key: Any) -> list[dict[str, Any]] | None:
    if isinstance(key, str):
        try:
            key = decode(key)
        except ValueError:
            return None
    calls = key if isinstance(key, list) else [key]
    found = [call.get("function", call) if isinstance(call, Mapping) else call for call in calls]
    sound = all(isinstance(call, Mapping) and isinstance(call.get("name"), str) for call in found)
    return [dict(call) for call in found] if sound else None
