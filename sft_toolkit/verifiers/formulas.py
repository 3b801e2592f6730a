"""`math`: numbers as `number` reads them, formulas by the library math-verify, whose numbers are English ones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from sft_toolkit.errors import ToolkitError
from sft_toolkit.verifiers.number import NumberVerifier
from sft_toolkit.verifiers.number_tokens import APOSTROPHES, DIGITS, readings, written
from sft_toolkit.verifiers.regions import boxed, marked
from sft_toolkit.verifiers.verdicts import NO_ANSWER, RIGHT, UNDECIDED, WRONG, Attempt, Verdict, references, strongest

_TOKEN = re.compile(rf"(?<![\w.,]){DIGITS}")
_GROUPED = re.compile(rf"[.,{APOSTROPHES}]|\{{,\}}")
_BRACED = re.compile(r"\{([.,])\}")
_SECONDS = 5


class _Open(Exception):
    """A number of the text can be read in two ways."""


@dataclass(frozen=True)
class MathVerifier:
    """`tolerance`: of numbers, as `number` takes it. Raises ToolkitError where the library is missing."""

    tolerance: float = 0.0

    name: ClassVar[str] = "math"

    def verify(self, attempt: Attempt) -> Verdict:
        as_number = NumberVerifier(self.tolerance).verify(attempt)
        if as_number.verdict == RIGHT or as_number.why in ("ambiguous", "percent", "range", "alternatives", "negated"):
            return as_number
        return strongest([_compare(attempt, key, as_number) for key in references(attempt.key)])


def _compare(attempt: Attempt, key: Any, as_number: Verdict) -> Verdict:
    try:
        from math_verify import parse, verify
    except ImportError as fault:
        raise ToolkitError("`verifier=math` needs math-verify", "install kolibri-sft[math]") from fault
    try:
        target = parse(_formula(attempt.answer, attempt.language), parsing_timeout=_SECONDS)
        gold = parse(_reference(str(key), attempt.language), parsing_timeout=_SECONDS)
    except _Open:
        return Verdict(UNDECIDED, None, "ambiguous")
    if not target:
        return Verdict(NO_ANSWER if as_number.verdict == NO_ANSWER else UNDECIDED, None, "no_formula")
    if not gold:
        return Verdict(UNDECIDED, str(target[-1]), "reference_is_no_formula")
    same = verify(gold, target, timeout_seconds=_SECONDS)
    if not same and as_number.verdict == UNDECIDED and as_number.why != "formula":
        return as_number
    return Verdict(RIGHT if same else WRONG, str(target[-1]), None, str(target[0]))


def _formula(text: str, language: str) -> str:
    """The formula of a text in LaTeX delimiters, its numbers with a decimal point and no groups."""
    box = boxed(text)
    region = box if box is not None else marked(text) or text
    region = _BRACED.sub(r"\1", region)
    pointed = _TOKEN.sub(lambda match: _pointed(match[0], language), region)
    if box is not None or ("\\" in pointed and "$" not in pointed and "\\(" not in pointed and "\\[" not in pointed):
        return f"${pointed}$"
    return pointed


def _reference(key: str, language: str) -> str:
    formula = _formula(key, language)
    return formula if "$" in formula or "\\" in formula else f"${formula}$"


def _pointed(token: str, language: str) -> str:
    if not _GROUPED.search(token):
        return token
    values = readings(token, language)
    if len(values) > 1:
        raise _Open
    return written(values[0]) if values else token
