"""The numbers of a text: signs, fractions, powers of ten, scale words, percent and units.

What looks like a number and is none (a date, a clock time, a version, the number of a step) is blanked before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sft_toolkit.verifiers.number_tokens import DIGITS, decimals_of, readings, written
from sft_toolkit.verifiers.units import is_known, scale_of, unit_of

VULGAR: Final = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5", "⅘": "4/5",
    "⅙": "1/6", "⅚": "5/6", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8",
}  # fmt: skip
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_LARGEST_POWER = 400

_MONTHS = (
    r"(?:jan|feb|m[äa]r|apr|ma[iy]|jun|jul|aug|sep|okt|oct|nov|de[zc]|f[ée]v|avr|juin|juil|ao[uû]t|"
    r"d[ée]c|j[äa]n)[a-zéûä]*\.?"
)
_NO_NUMBERS = re.compile(
    rf"""
    (?<![\d.,])\d{{1,2}}\.\s?\d{{1,2}}\.\s?(?:\d{{4}}|\d{{2}})(?!\d)               # 04.08.2021
  | (?:(?<=am\s)|(?<=vom\s)|(?<=bis\s)|(?<=zum\s)|(?<=ab\s)|(?<=seit\s))[0-3]?\d\.\s?[01]?\d\.(?!\d)
  | (?<![\d/])\d{{1,4}}/\d{{1,2}}/\d{{1,4}}(?![\d/])
  | (?<![\d-])\d{{4}}-\d{{2}}-\d{{2}}(?!\d)
  | \d{{1,2}}(?:\.|er|st|nd|rd|th)?\s(?:of\s)?{_MONTHS}(?![^\W\d_])(?:,?\s\d{{4}}(?!\d))?   # 4. August 2021
  | (?<![^\W\d_]){_MONTHS}\s(?:\d{{1,2}}(?:st|nd|rd|th)?(?:,\s\d{{4}})?|\d{{4}})(?!\d)
  | (?<![\d:])\d{{1,2}}:\d{{2}}(?::\d{{2}})?(?![\d:])(?:\s?(?:Uhr|h|[ap]\.?m\.?)(?!\w))?   # 14:30
  | (?<![\d.,])\d{{1,2}}(?:[.:]\d{{2}})?\s?(?:Uhr|o['’]clock|[ap]\.?m\.?)(?!\w)
  | (?<![\d.,])\d{{1,2}}\s?h\s?\d{{2}}(?!\w|\s?m(?:in|\b))                      # 14 h 30
  | (?<![\w.])v?\d+\.\d+\.\d+(?:\.\d+)*(?![\d.,]*\d)                            # 1.2.3, unless groups of three
  | (?<!\w)(?:version|v|python|release)\s?\d+(?:\.\d+)*(?!\w)
  | (?<!\w)(?:schritt|step|étape|teil|part|partie|aufgabe|task|übung|frage|question|kapitel|nr\.|no\.)\s?\d+(?!\w)
  | (?<![\d.,])\d+(?:st|nd|rd|th)(?!\w)
  | ^\s*(?:[*_]{{0,2}})\d{{1,2}}[.)](?=\s)(?=\s*\S)                             # the number of a list
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_GROUPS = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+")

_LATEX = (
    (re.compile(r"\\(?:text|mathrm|mathbf|textbf|operatorname)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"(?<=\d)\s*\\[dt]?frac\s*\{\s*(\d+)\s*\}\s*\{\s*(\d+)\s*\}"), r" \1⁄\2"),
    (re.compile(r"\\[dt]?frac\s*\{\s*([\d.,{}]+)\s*\}\s*\{\s*([\d.,{}]+)\s*\}"), r"\1⁄\2"),
    (re.compile(r"\\[dt]?frac\s*(\d)\s*(\d)"), r"\1⁄\2"),
    (re.compile(r"\{([.,])\}"), r"\1"),
    (re.compile(r"(?<=\d)\\[,;: ](?=\d{3})"), "\u2009"),
    (re.compile(r"\\[,;: ]|~(?=[\d\\])"), " "),
    (re.compile(r"\\!|\\left|\\right|\\displaystyle"), ""),
    (re.compile(r"\\([%$€#&])"), r"\1"),
    (re.compile(r"\\cdot|\\ast"), "·"),
    (re.compile(r"\\times"), "×"),
    (re.compile(r"\\approx|\\sim"), "≈"),
    (re.compile(r"\\pm"), "±"),
    (re.compile(r"\\sqrt"), "√"),
    (re.compile(r"\\pi(?![a-z])"), "π"),
    (re.compile(r"\^\s*\{?\\circ\}?"), "°"),
    (re.compile(r"\\euro(?:\{\})?"), "€"),
    (re.compile(r"\\[\[\]()]"), " "),
    (re.compile(r"\$\$?(\S(?:[^$\n]{0,78}\S)?)\$\$?(?!\d)"), r"\1"),
)
_SIGNS = "-−–"
_NUMBER = re.compile(
    rf"""
    (?P<sign>[{_SIGNS}](?=[\d€$£½⅓¼¾.,]|CHF|EUR)|(?<!\w)(?:minus|moins)\s)?
    (?P<currency>[€$£]|(?<!\w)(?:CHF|EUR|USD|Fr\.|SFr\.))?\s?
    (?P<inner>[{_SIGNS}](?=\d))?
    (?<![^\W\d])(?<![\d][.,])(?<!\^)
    (?:
      (?P<whole>\d+)\s?(?P<vulgar>[{"".join(VULGAR)}])
    | (?P<alone>[{"".join(VULGAR)}])
    | (?P<mixed>\d+)[ \u00a0](?P<upper>\d+)\s?[/⁄]\s?(?P<lower>\d+)(?![\d/⁄])
    | (?P<numerator>{DIGITS})\s?[/⁄]\s?(?P<denominator>{DIGITS})(?![\d/⁄])
    | (?P<digits>{DIGITS}|(?<![\d.,\w])[.]\d+)
      (?: [eE](?P<e>[-+]?\d+)(?!\w)
        | \s?[·×x*⋅]\s?10\s?(?:(?:\^|\*\*)\s?\{{?\s?(?P<power>[-−+]?\d+)\s?\}}?|(?P<raised>[⁻⁺]?[⁰¹²³⁴-⁹]+)) )?
    )
    (?:[.,](?:--|–|—|-)(?!\d))?
    """,
    re.VERBOSE,
)
_WORD = re.compile(r"[\s\u00a0\u202f]*(%|‰|°[CF]?|[€$£]|[^\W\d_]+(?:[-/][^\W\d_]+)*(?:\^?[23²³])?\.?)")
_GLUED_DASH = re.compile(r"-(?=[^\W\d_])")
_PERCENT = {"%", "prozent", "percent", "pct", "pourcent"}
_PERMILLE = {"‰", "promille"}
_NO_UNITS = re.compile(
    r"(?:und|oder|bzw|and|or|et|ou|pro|per|par|je|in|im|am|an|aus|von|vom|zu|zum|mit|"
    r"ist|sind|war|waren|is|are|was|were|for|für|auf|bis|to|of|de|des|du|à|au|a|es|"
    r"das|der|die|den|dem|ein|eine|also|so|donc|mal|times|fois|als|wie|wenn|insgesamt|"
    r"zusammen|total|left|übrig|weil|because|nicht|not|aber|but|sondern|the|les|le|la|d'un|"
    r"sur|at|by|from|with|than|then|dann)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text. `values`: what it may be, more than one where its writing leaves that open.

    `step`: what one unit of its last digit is worth, None for a fraction. `words`: those behind it, units first.
    """

    start: int
    end: int
    text: str
    values: tuple[Fraction, ...]
    step: Fraction | None = None
    percent: bool = False
    words: tuple[str, ...] = ()

    @property
    def unit(self) -> str | None:
        """The unit by its own name, or the first word behind the number, None where nothing is named."""
        return self.words[0] if self.words else None

    @property
    def value_text(self) -> str:
        return "|".join(map(written, self.values)) + ("%" if self.percent else "")


def plain(text: str) -> str:
    """A text without LaTeX around its numbers."""
    if "\\" in text or "$" in text or "{" in text or "~" in text:
        for pattern, instead in _LATEX:
            text = pattern.sub(instead, text)
    return text


def blanked(text: str) -> str:
    """A text of the same length in which dates, clock times, versions and the numbers of steps are blanks."""
    return _NO_NUMBERS.sub(lambda match: match[0] if _GROUPS.fullmatch(match[0]) else "□" * len(match[0]), text)


def find_numbers(text: str, language: str) -> list[Number]:
    """The numbers of a text that went through `plain` and `blanked`, in order."""
    found = []
    for match in _NUMBER.finditer(text):
        number = _number(match, text, language)
        if number is not None:
            found.append(number)
    return found


def _number(match: re.Match[str], text: str, language: str) -> Number | None:
    values, step = _value(match, language)
    if not values:
        return Number(match.start(), match.end(), match[0].strip(), ())
    negative = bool(match["inner"]) != (bool(match["sign"]) and not _is_operator(text, match.start()))
    factor, percent, words, end = _behind(text, match.end(), language)
    if match["currency"]:
        words = (unit_of(match["currency"]), *words)
    scaled = tuple((-value if negative else value) * factor for value in values)
    begin = match.start() + (bool(match["sign"]) and not negative)
    return Number(
        begin, end, text[begin : match.end()].strip(), scaled, None if step is None else step * factor, percent, words
    )


def _value(match: re.Match[str], language: str) -> tuple[tuple[Fraction, ...], Fraction | None]:
    if match["digits"]:
        token = match["digits"]
        values = (Fraction("0" + token),) if token[0] == "." else readings(token, language)
        exponent = match["e"] or match["power"] or (match["raised"] or "0").translate(_SUPERSCRIPTS)
        power = int(exponent.replace("−", "-"))
        if abs(power) > _LARGEST_POWER:
            return (), None
        shift = Fraction(10) ** power
        decimals = 0 if len(values) == 1 and values[0].denominator == 1 else decimals_of(token)
        return tuple(value * shift for value in values), shift / 10**decimals
    if match["whole"]:
        return (int(match["whole"]) + Fraction(VULGAR[match["vulgar"]]),), None
    if match["alone"]:
        return (Fraction(VULGAR[match["alone"]]),), None
    if match["mixed"]:
        upper, lower = int(match["upper"]), int(match["lower"])
        return ((int(match["mixed"]) + Fraction(upper, lower),) if lower else ()), None
    uppers, lowers = readings(match["numerator"], language), readings(match["denominator"], language)
    return tuple(upper / lower for upper in uppers for lower in lowers if lower), None


def _is_operator(text: str, at: int) -> bool:
    """True for a dash that stands between two numbers, or behind a word or a bracket that it touches."""
    before = text[:at]
    return bool(re.search(r"[\d%)\]]\s*$|\w$", before))


def _behind(text: str, at: int, language: str) -> tuple[Fraction, bool, tuple[str, ...], int]:
    """Scale, percent and the words behind a number, and where the number with its scale and percent ends."""
    factor, percent, end = Fraction(1), False, at
    match = _WORD.match(text, at + bool(_GLUED_DASH.match(text, at)))
    if match and (scale := scale_of(match[1], language)) is not None:
        factor, end = Fraction(10) ** scale, match.end()
        match = _WORD.match(text, end)
    if match and (match[1].lower() in _PERCENT or match[1].lower() in _PERMILLE):
        factor *= 1 if match[1].lower() in _PERCENT else Fraction(1, 10)
        percent, end = True, match.end()
        match = _WORD.match(text, end)
    elif per := re.match(r"\s?(?:per cent|pour cent|v\. ?H\.)", text[end:]):
        return factor, True, (), end + per.end()
    words: list[str] = []
    while match and len(words) < 3:
        unit = unit_of(match[1])
        if _NO_UNITS.fullmatch(unit) and not is_known(unit):
            break
        words.append(unit)
        match = None if match[1].endswith(".") and not is_known(unit) else _WORD.match(text, match.end())
    return factor, percent, tuple(words), end
