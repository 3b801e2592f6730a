"""Whether a trace stays in its language throughout: every stretch of it that can be judged must.

The language of a whole text hides a drift ("Wir berechnen … wait, let me check that again" is German by 0.92), so the
prose is judged by sentences, clauses and overlapping windows, words in another script and runs of closed-class words of
another language. What makes a stretch foreign: `labelers/foreign.py`. Stretches of less than 20 letters say nothing,
unless closed-class words do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sft_toolkit.labelers.foreign import MIN_LETTERS, MIN_PROBABILITY, evidence, foreign_language, letters
from sft_toolkit.labelers.function_words import LISTED, function_words
from sft_toolkit.labelers.identifier import accepted_labels, identify
from sft_toolkit.labelers.prose import prose
from sft_toolkit.labelers.stretches import Span, clauses, ends_with_mark, in_other_script, sentences, windows, words_of

WORDS_AN_UNCLEAR_STRETCH = 2000
"""Words of a trace for each stretch that may be in another language and not clearly so: chance grows with length."""

LEAST_IN_RUN = 2
"""Closed-class words of another language that a part of a sentence must hold to be looked at by itself."""

_GAINS = {1: 4, 0: -1, -1: -8}


@dataclass(frozen=True, slots=True)
class Stretch:
    """Characters `start` to `end` of the text, and the language that they are in with `probability`.

    `is_clear` is False where a stretch in another language might be an odd one of its own.
    """

    start: int
    end: int
    language: str
    probability: float
    is_clear: bool = True


@dataclass(frozen=True, slots=True)
class Consistency:
    """`stays` is None where nothing could be judged, and so is `share`, the part of judged stretches in the language.

    `offending` is the first stretch in another language, where the text does not stay in its own.
    """

    stays: bool | None
    share: float | None
    judged: int
    offending: Stretch | None


def judge_language(text: str, language: str = "de", prompt: str = "") -> Consistency:
    """Judge whether `text` stays in `language` (ISO 639-1); what it copies from `prompt` does not count.

    Raises ValueError for a language that lid.176 does not know.
    """
    accepted_labels(language)
    plain = prose(text, prompt)
    stretches = list(judged_stretches(plain, language))
    if not stretches:
        return Consistency(None, None, 0, None)
    foreign = sorted((stretch for stretch, is_own in stretches if not is_own), key=lambda stretch: stretch.start)
    counted = [stretch for stretch in foreign if stretch.is_clear]
    if _apart(foreign) > len(words_of(plain)) / WORDS_AN_UNCLEAR_STRETCH:
        counted = foreign
    share = 1 - len(foreign) / len(stretches)
    return Consistency(not counted, share, len(stretches), counted[0] if counted else None)


def _apart(foreign: list[Stretch]) -> int:
    """How many of the stretches, in order of their beginnings, do not overlap with the one counted before."""
    count = end = 0
    for stretch in foreign:
        if stretch.start >= end:
            count, end = count + 1, stretch.end
    return count


def judged_stretches(plain: str, language: str) -> Iterator[tuple[Stretch, bool]]:
    """Each stretch of the prose `plain` that can be judged, and whether it is in `language`."""
    words = words_of(plain)
    whole = list(sentences(plain, words))
    for stretch in whole:
        yield from _judged(plain, stretch, language, is_sentence=True)
    for stretch in windows(words):
        yield from _judged(plain, stretch, language, is_sentence=False)
    known = {(stretch[0], stretch[-1]) for stretch in whole}
    for stretch in (*clauses(plain, words), *in_other_script(plain, words), *foreign_runs(plain, whole, language)):
        if (stretch[0], stretch[-1]) not in known:
            known.add((stretch[0], stretch[-1]))
            yield from _foreign(plain, stretch, language, is_sentence=False)


def foreign_runs(plain: str, whole: list[list[Span]], language: str) -> Iterator[list[Span]]:
    """Parts of sentences that are rich in closed-class words of another language, whatever stands around them.

    A word of that language counts 1, one of `language` -2, any other word -1/4: the run has the largest sum. Words that
    are not capitalised and of neither list join it.
    """
    own = function_words(language)
    for stretch in whole:
        texts = [plain[start:end] for start, end in stretch]
        lower = [text.lower() for text in texts]
        not_own = set(lower) - own
        for other in LISTED:
            if other == language or not_own.isdisjoint(function_words(other)):
                continue
            marks = [(word in function_words(other)) - (word in own) for word in lower]
            if marks.count(1) < LEAST_IN_RUN:
                continue
            begin, end = _best(marks)
            if marks[begin:end].count(1) >= LEAST_IN_RUN:
                free = [not mark and word[:1].islower() for mark, word in zip(marks, texts, strict=True)]
                while begin > 0 and free[begin - 1]:
                    begin -= 1
                while end < len(free) and free[end]:
                    end += 1
                yield stretch[begin:end]


def _best(marks: list[int]) -> tuple[int, int]:
    """The run with the largest sum, where a mark of 1 counts 4, of 0 -1 and of -1 -8; it begins and ends with a 1."""
    total = begin = best = 0
    found = (0, 0)
    for place, mark in enumerate(marks):
        if total <= 0:
            total, begin = 0, place
        total += _GAINS[mark]
        if total > best:
            best, found = total, (begin, place + 1)
    return found


def _judged(plain: str, stretch: list[Span], language: str, is_sentence: bool) -> Iterator[tuple[Stretch, bool]]:
    is_witness = is_sentence or language not in LISTED  # a run says better than a window where a drift begins
    found = next(_foreign(plain, stretch, language, is_sentence), None) if is_witness else None
    words = [plain[start:end] for start, end in stretch]
    if found is not None:
        yield found
    elif letters(words) >= MIN_LETTERS:
        label, probability = identify(" ".join(words))
        if label in accepted_labels(language) and probability >= MIN_PROBABILITY:
            yield Stretch(stretch[0][0], stretch[-1][1], language, probability), True
    elif is_sentence and (found_words := evidence(words, language)).own >= 2 and not found_words.other:
        yield Stretch(stretch[0][0], stretch[-1][1], language, 1.0), True


def _foreign(plain: str, stretch: list[Span], language: str, is_sentence: bool) -> Iterator[tuple[Stretch, bool]]:
    words = [plain[start:end] for start, end in stretch]
    found = foreign_language(words, language, is_sentence, ends_with_mark(plain, stretch))
    if found is not None:
        place = stretch[0][0], stretch[-1][1]
        yield Stretch(*place, found.language, found.probability, found.is_clear), False
