"""Digits with separators as exact rationals, in the writing of a language.

A separator that can be read in one way only is read in that way whatever the language: 7.10, 0.910 and 9,400.50. Where
one separator stands before exactly three digits, the language decides, or, where both readings are usual in it, neither
(Swiss and French 4.300).
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

SPACES: Final = " \u00a0\u202f\u2009"
APOSTROPHES: Final = "'’‘ʼ"
DIGITS: Final = rf"\d+(?:[.,{APOSTROPHES}]\d+|[{SPACES}]\d{{3}}(?!\d))*"

_COMMA_DECIMAL = {"de", "es", "it", "nl", "pt", "da", "id", "tr", "el", "ro", "hr", "sl", "sr", "is", "vi"}
_SPACE_GROUPS = {"fr", "pl", "cs", "sk", "sv", "nb", "nn", "no", "fi", "uk", "ru", "bg", "hu", "et", "lv", "lt"}
_POINT_DECIMAL = {"en", "ja", "zh", "ko", "he", "th", "hi", "ms", "ga", "cy"}
_GROUPED = re.compile(r"[1-9]\d{0,2}(?:(.)\d{3})(?:\1\d{3})*")
_INDIAN = re.compile(r"[1-9]\d?(?:,\d\d)*,\d{3}")


def readings(token: str, language: str) -> tuple[Fraction, ...]:
    """What the digits may mean in `language` (`de`, `de-CH`, …): one value, two where that is open, none if malformed.

    >>> readings("4.300", "de"), readings("4.300", "en")
    ((Fraction(4300, 1),), (Fraction(43, 10),))
    """
    text = re.sub(rf"[{SPACES}]", " ", re.sub(rf"[{APOSTROPHES}]", "'", token))
    kinds = [character for character in text if not character.isdigit()]
    if not kinds:
        return (Fraction(text),)
    last = kinds[-1]
    groups = set(kinds[:-1])
    if len(kinds) > 1 and last in ".," and last not in groups:
        return _with_decimals(text, last)
    if len(set(kinds)) > 1:
        return ()
    if len(kinds) > 1 or last in " '":
        return (Fraction(_bare(text)),) if _GROUPED.fullmatch(text) or _INDIAN.fullmatch(text) else ()
    if not _GROUPED.fullmatch(text):
        return (_decimal(text, last),)
    meanings = {"group": Fraction(_bare(text)), "decimal": _decimal(text, last)}
    return tuple(meanings[kind] for kind in _meanings(last, language))


def _with_decimals(text: str, last: str) -> tuple[Fraction, ...]:
    whole, _, decimals = text.rpartition(last)
    if len(set(whole) - set("0123456789")) != 1 or not (_GROUPED.fullmatch(whole) or _INDIAN.fullmatch(whole)):
        return ()
    return (Fraction(f"{_bare(whole)}.{decimals}"),)


def _meanings(separator: str, language: str) -> tuple[str, ...]:
    """How the one separator before three digits is read."""
    base, _, region = language.lower().replace("_", "-").partition("-")
    if region in ("ch", "li") or base not in _COMMA_DECIMAL | _SPACE_GROUPS | _POINT_DECIMAL:
        return ("group", "decimal")
    if base in _POINT_DECIMAL or region == "mx":
        return ("decimal",) if separator == "." else ("group",)
    if separator == ",":
        return ("decimal",)
    return ("group",) if base in _COMMA_DECIMAL else ("group", "decimal")


def _bare(text: str) -> str:
    return "".join(character for character in text if character.isdigit())


def _decimal(text: str, separator: str) -> Fraction:
    return Fraction(text.replace(separator, "."))


def decimals_of(token: str) -> int:
    """Digits behind the last separator, taken as a decimal one."""
    tail = re.search(r"[.,](\d+)$", token)
    return len(tail[1]) if tail else 0


def written(value: Fraction) -> str:
    """A rational as a decimal where that ends, else as a fraction: equal values give equal texts."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    if value.denominator == 1:
        return str(value.numerator)
    places = next(n for n in range(1, 4000) if 10**n % value.denominator == 0)
    scaled = abs(value.numerator) * (10**places // value.denominator)
    digits = str(scaled).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"
