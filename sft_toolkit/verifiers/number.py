"""`number`: exact rationals, read as the record's language writes them; what is open stays undecided."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

from sft_toolkit.verifiers.number_answers import Given, read_number
from sft_toolkit.verifiers.numbers import Number
from sft_toolkit.verifiers.units import factor_between, is_known, same_word
from sft_toolkit.verifiers.verdicts import NO_ANSWER, RIGHT, UNDECIDED, WRONG, Attempt, Verdict, references, strongest


@dataclass(frozen=True)
class NumberVerifier:
    """`tolerance`: how far an answer may be from the reference, as a share of that; 0: equal."""

    tolerance: float = 0.0

    name: ClassVar[str] = "number"

    def verify(self, attempt: Attempt) -> Verdict:
        given = read_number(attempt.answer, attempt.language)
        if given.number is None:
            return Verdict(NO_ANSWER if given.nothing else UNDECIDED, None, given.why)
        number = given.number
        verdicts = [self._compare(number, key, attempt.language) for key in references(attempt.key)]
        return strongest(verdicts)

    def _compare(self, number: Number, key: Any, language: str) -> Verdict:
        reference = read_key(key, language).number
        if reference is None:
            return Verdict(UNDECIDED, number.text, "reference_is_no_number", number.value_text)
        found = {
            _verdict(number, value, reference, wanted, self.tolerance)
            for value in number.values
            for wanted in reference.values
        }
        (verdict, why) = found.pop() if len(found) == 1 else (UNDECIDED, "ambiguous")
        return Verdict(verdict, number.text, why, number.value_text)


def read_key(key: Any, language: str) -> Given:
    """The number of a reference: JSON numbers are exact, text is read like an answer."""
    if isinstance(key, bool) or key is None:
        return Given(why="reference_is_no_number")
    if isinstance(key, int | float | Decimal):
        value = Fraction(Decimal(repr(key)) if isinstance(key, float) else key)
        return Given(Number(0, 0, str(key), (value,)))
    return read_number(str(key), language) if isinstance(key, str) else Given(why="reference_is_no_number")


def _verdict(
    number: Number, value: Fraction, reference: Number, wanted: Fraction, tolerance: float
) -> tuple[str, str | None]:
    factor = _unit_factor(number, reference)
    if factor is None:
        return (WRONG, "unit") if _both_known(number, reference) else _open_unit(value == wanted)
    value = value * factor
    if number.percent != reference.percent:
        share, whole = (value, wanted) if number.percent else (wanted, value)
        if share / 100 == whole and share:
            return UNDECIDED, "percent"
    if value == wanted or abs(value - wanted) <= Fraction(tolerance) * abs(wanted):
        return RIGHT, None
    if _is_rounding(value, wanted, number.step and number.step * factor):
        return UNDECIDED, "rounded"
    return WRONG, None


def _open_unit(equal: bool) -> tuple[str, str | None]:
    return (UNDECIDED if equal else WRONG), "unit"


def _unit_factor(number: Number, reference: Number) -> Fraction | None:
    """What turns the answer's unit into the reference's: 1 where one names none, None where they do not convert."""
    if not number.words or not reference.words:
        return Fraction(1)
    if _both_known(number, reference):
        return factor_between(number.words[0], reference.words[0])
    if any(same_word(word, other) for word in number.words for other in reference.words):
        return Fraction(1)
    return None


def _both_known(number: Number, reference: Number) -> bool:
    return all(words and is_known(words[0]) for words in (number.words, reference.words))


def _is_rounding(value: Fraction, wanted: Fraction, step: Fraction | None) -> bool:
    """True where `value` is `wanted` rounded to a multiple of `step`, halves either way."""
    return step is not None and value != wanted and abs(value - wanted) * 2 <= step
