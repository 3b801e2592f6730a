"""`text`: equal but for case and dress, or named as the answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from sft_toolkit.json_text import encode_text
from sft_toolkit.verifiers.plain_text import ALTERNATIVE, NEGATION, folded, phrase, transliterated, without_article
from sft_toolkit.verifiers.regions import bold, boxed, marked, sentences
from sft_toolkit.verifiers.verdicts import NO_ANSWER, RIGHT, UNDECIDED, WRONG, Attempt, Verdict, references, strongest

_COPULA = r"(?:ist|sind|heißt|heisst|lautet|nennt sich|is|are|est|sont|s'appelle|=|:)"
_ARTICLE = r"(?:(?:der|die|das|ein|eine|the|an?|le|la|les|un|une)\s+|l['’])?"
_DASHES = re.compile(r"[\"'“”„«»‘’*_`]")


@dataclass(frozen=True)
class TextVerifier:
    """NFKC, case, outer quotes, the last full stop, Markdown and a leading article make no difference; ß is ss."""

    name: ClassVar[str] = "text"

    def verify(self, attempt: Attempt) -> Verdict:
        if not folded(attempt.answer):
            return Verdict(NO_ANSWER, None, "empty")
        return strongest([_compare(attempt.answer, key) for key in references(attempt.key)])


def _compare(answer: str, key: Any) -> Verdict:
    wanted = without_article(folded(key if isinstance(key, str) else encode_text(key)))
    if not wanted:
        return Verdict(UNDECIDED, None, "empty_reference")
    region, named = _region(answer)
    given = without_article(folded(region))
    verdict, why = _judge(region, given, wanted, answer)
    extracted = region.strip() if named or verdict != RIGHT else wanted
    value = wanted if verdict == RIGHT else given
    return Verdict(verdict, extracted, why, value)


def _region(answer: str) -> tuple[str, bool]:
    """What is given as the answer, and whether it is marked as that."""
    box = boxed(answer)
    if box:
        return re.sub(r"^\\text\s*\{(.*)\}$", r"\1", box), True
    marker = marked(answer)
    if marker:
        return marker, True
    strong = bold(answer)
    if len(strong) == 1 and not strong[0].rstrip().endswith(":"):
        return strong[0], True
    return (sentences(answer) or [answer])[-1], False


def _judge(region: str, given: str, wanted: str, answer: str) -> tuple[str, str | None]:
    if wanted in (given, without_article(folded(answer))):
        return RIGHT, None
    if transliterated(given) == transliterated(wanted):
        return UNDECIDED, "umlaut"
    place = phrase(wanted).search(given)
    if place is None:
        elsewhere = phrase(wanted).search(folded(answer))
        return (UNDECIDED, "named_elsewhere") if elsewhere and not _is_marked(answer) else (WRONG, None)
    around = given[: place.start()] + " " + given[place.end() :]
    if NEGATION.search(around):
        return UNDECIDED, "negated"
    if ALTERNATIVE.search(around):
        return UNDECIDED, "one_of_several"
    return (RIGHT, None) if _is_predicate(given, wanted) else (UNDECIDED, "named_in_a_sentence")


def _is_marked(answer: str) -> bool:
    return boxed(answer) is not None or marked(answer) is not None


def _is_predicate(given: str, wanted: str) -> bool:
    """True for "… is the WANTED" at the end of a sentence and "WANTED is …" at its beginning."""
    plain = _DASHES.sub("", given)
    ends = re.search(rf"(?<!\w){_COPULA}\s*{_ARTICLE}{re.escape(wanted)}$", plain)
    begins = re.match(rf"{re.escape(wanted)}\s+{_COPULA}(?!\w)", plain)
    return bool(ends or begins)
