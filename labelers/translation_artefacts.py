"""Three marks that machine translation from English leaves in German text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sft_toolkit.labelers.identifier import accepted_labels, identify
from sft_toolkit.labelers.prose import WORD, without_code

Kind = Literal["decimal_point", "explained_comma", "self_gloss"]

_SENTENCE = re.compile(r"[^\n]+?(?:(?<![.!?…])[.!?…]++|$)(?=\s|$)", re.MULTILINE)
_POINTED = re.compile(
    r"""
    (?:\b(?P<numbered>Abschnitt|Abb|Abbildung|Absatz|Aufgabe|Gleichung|Kapitel|Nr|Nummer|Python|Schritt|Tabelle|Version)
       \.?\s+)?
    (?<![\w.,§-]) (?P<whole>\d+) \. (?P<fraction>\d+) (?!\w|[.,]\d|\s*Uhr)
    """,
    re.VERBOSE,
)
_HEADING = re.compile(r"\s+[A-ZÄÖÜ]")
_EXPLAINED = re.compile(
    r"""
    (?<!\d)(?P<whole>\d++),(?P<fraction>\d{1,20}) [^.\n]{0,40}? (?:bedeutet|entspricht|heißt|also|d\.\ ?h\.|=|\() \s*
        (?P=whole)\.(?P=fraction)
    | \A (?=.*\d) (?=.*(?:Dezimalkomma|Dezimaltrenn)|(?=.*Komma).*Punkt)
        .*(?:[Ii]m\ Deutschen|[Ii]n\ Deutschland|auf\ Deutsch|[Ii]m\ Englischen|\b(?:deutsche|englische)[nrms]?\b)
    """,
    re.VERBOSE,
)
_SELF_GLOSS = re.compile(
    r"""
    \b (?P<word>[A-ZÄÖÜ][^\W\d_]{3,}) ["“”«]? \s*+
    (?: \( \s* (?:(?:d\.\ ?h\.|das\ heißt|also|=|auf\ Deutsch:?)\s*)? ["„»]? (?P=word) ["“”«]? \s* \)
      | (?:,\s*+)? (?:sind|ist|bedeutet|heißt|meint|bezeichnet|=|das\ heißt|also) \s+
        (?:(?:auf\ Deutsch|einfach|nur|eben|hier|eine?n?|die|der|das)\s+){0,3}
        ["„»]? (?P=word) \b (?!\s+[a-zäöü])
    )
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Artefact:
    """A mark of translation, at characters `start` to `end` of the text."""

    kind: Kind
    start: int
    end: int


def find_artefacts(text: str) -> list[Artefact]:
    """Marks of translation in German `text`, in order; sentences in another language are passed over.

    `decimal_point`: 0.45 for 0,45; no thousands (1.250), dates, times, versions and section numbers.
    `explained_comma`: a sentence that explains the decimal comma to itself.
    `self_gloss`: a word explained by itself, as in "Brötchen sind Brötchen".
    """
    plain = without_code(text)
    found = [artefact for sentence in _SENTENCE.finditer(plain) for artefact in _in_sentence(sentence)]
    return sorted(found, key=lambda artefact: artefact.start)


def _in_sentence(sentence: re.Match[str]) -> Iterator[Artefact]:
    line, offset = sentence[0], sentence.start()
    if not _may_be_german(line):
        return
    explained = _EXPLAINED.search(line)
    if explained is not None:
        yield Artefact("explained_comma", offset + explained.start(), offset + explained.end())
    for number in _POINTED.finditer(line):
        if explained is None and _is_decimal(number):
            yield Artefact("decimal_point", offset + number.start("whole"), offset + number.end())
    for gloss in _SELF_GLOSS.finditer(line):
        yield Artefact("self_gloss", offset + gloss.start(), offset + gloss.end())


def _may_be_german(line: str) -> bool:
    words = WORD.findall(line)
    if not any(len(word) > 1 for word in words):
        return False
    language, probability = identify(" ".join(words))
    return language in accepted_labels("de") or probability < 0.5


def _is_decimal(number: re.Match[str]) -> bool:
    """False for what a point joins in German, too: 1.250 inhabitants, section 2.1, version 3.11."""
    is_thousands = len(number["fraction"]) == 3 and number["whole"] != "0" and len(number["whole"]) <= 3
    line = number.string
    is_heading = not line[: number.start()].strip() and _HEADING.match(line, number.end()) is not None
    return not (number["numbered"] or is_thousands or is_heading)
