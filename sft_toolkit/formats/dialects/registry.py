"""The one table of dialects: calls with a mark, calls without one, and what a text must hold for any of them."""

from __future__ import annotations

import re
from collections import defaultdict

from sft_toolkit.formats.dialects.channels import HARMONY
from sft_toolkit.formats.dialects.code import OutsideCode
from sft_toolkit.formats.dialects.deepseek import DEEPSEEK
from sft_toolkit.formats.dialects.gemma import GEMMA
from sft_toolkit.formats.dialects.kimi import KIMI
from sft_toolkit.formats.dialects.markup import CallDialect
from sft_toolkit.formats.dialects.mistral import MISTRAL
from sft_toolkit.formats.dialects.tags import TAGGED

MARKED: tuple[CallDialect, ...] = (*TAGGED, MISTRAL, DEEPSEEK, KIMI, HARMONY, GEMMA)
"""Dialects whose calls begin with a mark; of two that match in one place the first counts."""

_NAMED = {
    f"d{number}_{form}": dialect for number, dialect in enumerate(MARKED) for form in range(len(dialect.openings))
}
_FORMS = {
    f"d{number}_{form}": mark for number, dialect in enumerate(MARKED) for form, mark in enumerate(dialect.openings)
}


def _pattern() -> str:
    """Every opening, those of one first sign together: `re` then passes over all other signs at once."""
    begun: dict[str, list[str]] = defaultdict(list)
    for name, mark in _FORMS.items():
        first = mark[:2] if mark[0] == "\\" else mark[0]
        begun[first].append(f"(?P<{name}>{mark[len(first) :]})")
    return "|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in begun.items())


MARKS = re.compile(_pattern())
MARKS_OUTSIDE_CODE = OutsideCode(MARKS.pattern)
_SIGNS = ("<", "[TOOL_CALLS]", "to=functions.")
_BEGINNINGS = re.compile(r"\s*+(?:[\[{◁]|Thought:|Action:|Action Input:|Observation:|Final Answer:)")


def may_hold_mark(text: str) -> bool:
    """A quick no for the texts that hold no mark of any dialect, which are nearly all."""
    return any(sign in text for sign in _SIGNS)


def may_hold_markup(text: str) -> bool:
    """A quick no for the texts that hold neither reasoning nor calls in any dialect, with marks or without."""
    return "<" in text or "[TOOL_CALLS]" in text or "to=functions." in text or _BEGINNINGS.match(text) is not None


def dialect_of(mark: re.Match[str]) -> CallDialect:
    """The dialect whose opening `mark`, a match of MARKS or MARKS_OUTSIDE_CODE, is."""
    return _NAMED[mark.lastgroup or ""]
