"""Three marks that machine translation from English leaves in German text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sft_toolkit.labelers.identifier import accepted_labels, identify
from sft_toolkit.labelers.pointed_numbers import english_decimals
from sft_toolkit.labelers.prose import WORD, without_code

Kind = Literal["decimal_point", "explained_comma", "self_gloss"]

_SENTENCE = re.compile(r"[^\n]+?(?:(?<![.!?…])[.!?…]++|$)(?=\s|$)", re.MULTILINE)
_EXPLAINED = re.compile(
    r"""
    (?<!\d)(?P<whole>\d++),(?P<fraction>\d{1,20}) [^.\n]{0,40}? (?:bedeutet|entspricht|heißt|also|d\.\ ?h\.|=|\() \s*
        (?P=whole)\.(?P=fraction)
    | \A (?=.*\d) (?=.*(?: Dezimal(?:komma|trenn|punkt)
                         | Komma\w*\b.{0,40}\b(?:statt|anstelle|anstatt|kein|nicht|für)\b.{0,30}Punkt
                         | Punkt\w*\b.{0,40}\b(?:statt|anstelle|anstatt|kein|nicht|sondern|für|als)\b.{0,30}Komma ))
        .*(?:[Ii]m\ Deutschen|[Ii]n\ Deutschland|auf\ Deutsch|[Ii]m\ Englischen|\b(?:deutsche|englische)[nrms]?\b)
    """,
    re.VERBOSE,
)
_ON_VERSIONS = re.compile(
    r"[Vv]ersion|[Kk]ernel|[Gg]libc|[Rr]elease|[Uu]pgrad|[Uu]pdate|[Ii]nstallier|[Ff]irmware|[Tt]reiber"
)
# Who speaks of how a number is written, or of what stands in a file, quotes it.
_ON_WRITING = re.compile(
    r"Punkt\w*\b.*\bKomma|Komma\w*\b.*\bPunkt|Dezimalpunkt|(?:englische|amerikanische)[nr]? Schreibweise"
)
_QUOTES_DATA = re.compile(
    r"\b(?:[Ii]n der|[Ii]m|[Dd]er|[Dd]ie|[Dd]as)\s+(?:Datei|Log|Protokoll|Code|Quelltext|Skript|JSON|Ausgabe|Eingabe"
    r"|CSV|Spalte|Zelle|Konfiguration|Antwort des \w+)\b.*\b(?:steht|stehen|lautet|enthält|zeigt|liefert|meldet|gibt)\b"
)
# "Regeln sind Regeln", "Geschäft ist Geschäft": German says so of itself.
_SAYINGS = (
    "Regeln|Kinder|Männer|Frauen|Gesetze|Tatsachen|Fakten|Befehle|Freunde|Schulden|Verträge|Geschäfte|Jungs|Eltern"
)
_SELF_GLOSS = re.compile(
    rf"""
    \b (?!(?:{_SAYINGS})\b) (?P<word>[A-ZÄÖÜ][^\W\d_]{{3,}}) ["“”«]? \s*+
    (?: \( \s* (?:(?:d\.\ ?h\.|das\ heißt|also|=|auf\ Deutsch:?)\s*)? ["„»]? (?P=word) ["“”«]? \s* \)
      | (?:,\s*+)? (?:sind|bedeutet|heißt|meint|bezeichnet|=|das\ heißt|also) \s+
        (?:(?:auf\ Deutsch|einfach|nur|eben|hier|eine?n?|die|der|das)\s+){{0,3}}
        ["„»]? (?P=word) \b (?!\s+[a-zäöü]|,\s+(?:deren|dessen|in|bei|für|wenn|falls)\b)
      | ist \s+ (?:auf\ Deutsch|einfach) \s+ (?:(?:eine?|die|der|das)\s+)? ["„»]? (?P=word) \b (?!\s+[a-zäöü])
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

    `decimal_point`: 0.45 for 0,45; not where a sentence speaks of how numbers are written.
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
    elif not (_ON_WRITING.search(line) or _QUOTES_DATA.search(line)):
        is_on_versions = _ON_VERSIONS.search(line) is not None
        for start, end in english_decimals(sentence.string, offset, sentence.end(), is_on_versions):
            yield Artefact("decimal_point", start, end)
    for gloss in _SELF_GLOSS.finditer(line):
        yield Artefact("self_gloss", offset + gloss.start(), offset + gloss.end())


def _may_be_german(line: str) -> bool:
    words = WORD.findall(line)
    if not any(len(word) > 1 for word in words):
        return False
    language, probability = identify(" ".join(words))
    return language in accepted_labels("de") or probability < 0.5
