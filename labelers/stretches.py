"""Stretches of a text's words that are judged each for itself: sentences, clauses, windows, words in another script.

A stretch is a list of words, each as its place (start, end) in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sft_toolkit.labelers.prose import WORD

WINDOW_WORDS = 15
WINDOW_STRIDE = 7

Span = tuple[int, int]

_SENTENCE_END = re.compile(r"(?<![.!?…:;])[.!?…:;]++(?=\s|$)|\n|[。！？；]")
_CLAUSE_END = re.compile(rf"{_SENTENCE_END.pattern}|[,](?=\s)|\s[–—-]+\s|[()，、]")
_FULL_STOP = re.compile(r"\s*[.!?…。！？]")
_LATIN = re.compile(r"[A-Za-zÀ-ɏḀ-ỿ]")


def words_of(plain: str) -> list[Span]:
    return [match.span() for match in WORD.finditer(plain)]


def sentences(plain: str, words: list[Span]) -> Iterator[list[Span]]:
    yield from _split(plain, words, _SENTENCE_END)


def clauses(plain: str, words: list[Span]) -> Iterator[list[Span]]:
    """Sentences, split further at commas, dashes and brackets."""
    yield from _split(plain, words, _CLAUSE_END)


def windows(words: list[Span]) -> Iterator[list[Span]]:
    """Overlapping windows; the last one ends with the text."""
    last = max(0, len(words) - WINDOW_WORDS)
    for start in (*range(0, last, WINDOW_STRIDE), last) if words else ():
        yield words[start : start + WINDOW_WORDS]


def in_other_script(plain: str, words: list[Span]) -> Iterator[list[Span]]:
    """Runs of words without a Latin letter, where they stand among words that have some."""
    run: list[Span] = []
    is_mixed = any(_LATIN.match(plain, start) for start, _ in words)
    for word in words if is_mixed else ():
        if not _LATIN.match(plain, word[0]):
            run.append(word)
        elif run:
            yield run
            run = []
    if run:
        yield run


def ends_with_mark(plain: str, stretch: list[Span]) -> bool:
    """Whether a full stop, question or exclamation mark follows the stretch."""
    return _FULL_STOP.match(plain, stretch[-1][1]) is not None


def _split(plain: str, words: list[Span], ends: re.Pattern[str]) -> Iterator[list[Span]]:
    places = iter([*(match.end() for match in ends.finditer(plain)), len(plain)])
    end, stretch = next(places), list[Span]()
    for word in words:
        while word[0] >= end:
            if stretch:
                yield stretch
            end, stretch = next(places), []
        stretch.append(word)
    if stretch:
        yield stretch
