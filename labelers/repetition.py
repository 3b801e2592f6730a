"""Loops: text that goes on without bringing anything new, as models write that are caught in a repetition.

Three kinds are looked for: a *period* of words that repeats unchanged; a period in which a counter alone changes
("Round 1: nothing yet. Round 2: nothing yet."); and *worn* text, whose sentences return in no fixed order. What people
repeat on purpose is no loop: tables, enumerations, code, logs, checks whose numbers differ, verse with a refrain, a
phrase said three times. Hence the amounts below.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sft_toolkit.labelers.periods import Ranks, repetitions

# What a loop has at least: repeats, and words beyond the first occurrence of its period.
_LEAST = 4, 30
_LEAST_COUNTED = 10, 120  # a counter that changes alone may also number cases
_LEAST_DATA = 40, 50  # code, tables, logs and records repeat by nature
# Without letters: a rule or dot leader on one line is short; grids of digits are large.
_LEAST_ON_A_LINE, _LEAST_WITHOUT_WORDS = 200, 1000
_LEAST_UNBROKEN = 200  # characters without a space
_LEAST_COUNTED_WORDS, _COUNTER_DIGITS = 2, 15
# A stretch is worn where known sentences outnumber new ones three to one, and by this many.
_NEW_SENTENCE, _LEAST_WORN, _LEAST_SENTENCE = -3, 20, 3
_SHARE_DIGITS = 4

_TOKEN = re.compile(
    r"""
      (?P<ideograph>[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])
    | (?P<number>\d+(?:[.,]\d+)?)
    | (?P<word>[^\W\d_]+(?:['’-][^\W\d_]+)*)
    | (?P<sign>[-+−*/·×÷=<>≤≥≠≡^%&|~_])
    """,
    re.VERBOSE,
)
_SENTENCE = re.compile(r"[^.!?…\n。！？]+")
_WITHIN_SENTENCES = re.compile(r"[^\w\s.!?…。！？]+")
_UNBROKEN = re.compile(rf"\w{{{_LEAST_UNBROKEN},}}|(?:[^\w\s] ?+){{{_LEAST_UNBROKEN},}}")
_DATA_LINES = re.compile(
    r"""
      ^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)                                      # fenced code
    | ^(?: [ \t]*[|+][^\n]*[|+]                                                # a row of a table
         | [^\n]*\S\t+\S[^\n]*                                                 # columns
         | [ \t]*[\[(]?(?:\d{2,4}[-./]\d{1,2}[-./]\d{1,4}|\d{1,2}:\d\d)\b[^\n]*  # a log begins with date or time
         | [ \t]*(?:-[ ])?[a-z_][\w-]*:[ ]\S+                                   # YAML
         | [ \t]*\[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|TRACE|NOTICE)\b[^\n]*     # or with a level
         | (?:[ ]{4}|\t)[^\n]*[=(){};\[\]][^\n]*                               # indented code
       )$
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_DATA = re.compile(r"[{}|;<>\t]|[^\W\d],[^\W\d]|\"\s*:|\w[(\[]|\w_\w|:=|==|\+=|->")
_RELATION = re.compile(r"[=<>≤≥≠≡+·×÷]|\d\s*[:/*-]\s*\d")

_LENGTHS = {"word": 1.0, "number": 1.0, "ideograph": 0.5, "sign": 0.0}


@dataclass(frozen=True, slots=True)
class Loop:
    """Characters `start` to `end` of the text repeat a period of so many words; `share` is their part of the text."""

    start: int
    end: int
    period: int
    repeats: int
    share: float


def find_loop(text: str) -> Loop | None:
    """The longest loop in `text`, None where there is none. Worn text is one only where nothing repeats in order.

    >>> find_loop("So. " + "I will look at it once more. " * 12)
    Loop(start=4, end=351, period=7, repeats=12, share=0.9858)
    >>> find_loop("Halt, halt, halt. Noch einmal von vorn.") is None
    True
    """
    found = [*_periodic(_Words(text)), *_unbroken(text)] or _worn(text)
    return max(found, key=lambda loop: (loop.end - loop.start, -loop.start), default=None)


class _Words:
    """The words, numbers and signs of a text, punctuation left out, with their places."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_TOKEN.finditer(text))
        self.folded = [token[0].casefold() for token in self.tokens]
        self.is_number = [token.lastgroup == "number" for token in self.tokens]
        self.data = [found.span() for found in _DATA_LINES.finditer(text)]

    def ranks(self, numbers_count: bool) -> Ranks:
        """int64[words]: equal for equal words, and for all numbers where they do not count."""
        words = self.folded
        if not numbers_count:
            words = ["0" if number else word for word, number in zip(words, self.is_number, strict=True)]
        ids: dict[str, int] = {}
        return np.fromiter((ids.setdefault(word, len(ids)) for word in words), np.int64, len(words))

    def span(self, first: int, stop: int) -> tuple[int, int]:
        """Characters of the words `first` to `stop`, with the punctuation that follows the last."""
        end = self.tokens[stop - 1].end()
        after = self.tokens[stop].start() if stop < len(self.tokens) else len(self.text)
        return self.tokens[first].start(), end + len(self.text[end:after].partition("\n")[0].rstrip())

    def spoken(self, first: int, stop: int) -> int:
        """How many of these are words proper."""
        return sum(token.lastgroup in ("word", "ideograph") for token in self.tokens[first:stop])

    def length(self, first: int, stop: int) -> float:
        """Words that these amount to: signs are none, and two ideographs are one."""
        return sum(_LENGTHS[str(token.lastgroup)] for token in self.tokens[first:stop])

    def loop(self, first: int, stop: int, period: int) -> Loop:
        named = sum(token.lastgroup != "sign" for token in self.tokens[first : first + period])
        return _loop(self.text, *self.span(first, stop), named or period, (stop - first) // period)

    def is_data(self, first: int, stop: int, period: int) -> bool:
        """Whether a repetition is code, a table, a log or records: by what its period holds, or by where it stands."""
        start, end = self.span(first, stop)
        covered = sum(max(0, min(end, last) - max(start, begin)) for begin, last in self.data)
        return covered * 2 > end - start or _DATA.search(self.text, *self.span(first, first + period)) is not None


def _periodic(words: _Words) -> Iterator[Loop]:
    """Loops with a period, unchanged or but for a counter."""
    for first, stop, period in repetitions(words.ranks(numbers_count=True), *_LEAST):
        if _is_loop(words, first, stop, period):
            yield words.loop(first, stop, period)
    if not any(words.is_number):
        return
    for first, stop, period in repetitions(words.ranks(numbers_count=False), *_LEAST):
        if words.spoken(first, first + period) >= _LEAST_COUNTED_WORDS:
            for begin, end in _counted(words, first, period, (stop - first) // period):
                if _reaches(_LEAST_COUNTED, words, begin, end, period) and not words.is_data(begin, end, period):
                    yield words.loop(begin, end, period)


def _reaches(least: tuple[int, int], words: _Words, first: int, stop: int, period: int) -> bool:
    repeats, redundant = least
    return (stop - first) // period >= repeats and words.length(first + period, stop) >= redundant


def _is_loop(words: _Words, first: int, stop: int, period: int) -> bool:
    """Whether so many unchanged repeats are a loop, by what is repeated."""
    has_numbers = any(words.is_number[first : first + period])
    is_equation = has_numbers and "=" in words.folded[first : first + period]
    if not (words.spoken(first, first + period) or is_equation):
        start, end = words.span(first, stop)
        is_line = "\n" not in words.text[start:end] and not has_numbers
        return stop - first - period >= (_LEAST_ON_A_LINE if is_line else _LEAST_WITHOUT_WORDS)
    least = _LEAST_DATA if words.is_data(first, stop, period) else _LEAST
    return _reaches(least, words, first, stop, period)


def _counted(words: _Words, first: int, period: int, repeats: int) -> Iterator[tuple[int, int]]:
    """Stretches of a repetition whose numbers all stay, or grow together by one step: a counter and nothing else."""
    places = [place for place in range(first, first + period) if words.is_number[place]]
    rows = [[words.folded[place + row * period] for place in places] for row in range(repeats)]
    is_calculation = _RELATION.search(words.text, *words.span(first, first + period)) is not None
    begin, last_step = 0, None
    for row, (above, below) in enumerate(pairwise(rows), start=1):
        step = _step(above, below, is_calculation)
        if step is None or (row - begin > 1 and step != last_step):
            yield first + begin * period, first + row * period
            begin = row if step is None else row - 1
        last_step = step
    yield first + begin * period, first + repeats * period


def _step(above: list[str], below: list[str], is_calculation: bool) -> int | None:
    """By how much the numbers grow from one row to the next; None where they do not all grow alike (or stay).

    In a calculation one number alone may change: "1 + 1 = 2, 2 + 1 = 3" says something new each time.
    """
    changed = [(a, b) for a, b in zip(above, below, strict=True) if a != b]
    if not changed:
        return 0
    if not all(text.isdecimal() and len(text) <= _COUNTER_DIGITS for pair in changed for text in pair):
        return None
    steps = {int(b) - int(a) for a, b in changed}
    return steps.pop() if len(steps) == 1 and not (is_calculation and len(changed) > 1) else None


def _worn(text: str) -> Iterator[Loop]:
    """The stretch with the largest surplus of sentences that were read before, where that is large enough."""
    plain = _DATA_LINES.sub(lambda lines: " " * len(lines[0]), text)
    if _known_again(plain) < _LEAST_WORN:
        return
    sentences: list[tuple[int, int, tuple[str, ...]]] = []
    known: set[tuple[str, ...]] = set()
    surplus = begin = best = best_begin = best_stop = 0
    for found in _SENTENCE.finditer(plain):
        words = tuple(token[0].casefold() for token in _TOKEN.finditer(found[0]))
        if sum(word[0].isalpha() for word in words) < _LEAST_SENTENCE:
            continue
        surplus += 1 if words in known else _NEW_SENTENCE
        known.add(words)
        sentences.append((*found.span(), words))
        if surplus <= 0:
            surplus, begin = 0, len(sentences)
        elif surplus > best:
            best, best_begin, best_stop = surplus, begin, len(sentences)
    worn = sentences[best_begin:best_stop]
    period = sum(map(len, {words for *_, words in worn}))
    repeats = sum(len(words) for *_, words in worn) // max(1, period)
    if best >= _LEAST_WORN and repeats >= _LEAST[0]:
        start, end = worn[0][0], worn[-1][1]
        yield _loop(text, end - len(text[start:end].lstrip()), end, period, repeats)


def _known_again(plain: str) -> int:
    """At most so many sentences were read before: a count without marks, and without signs, that is quickly taken."""
    bare = _WITHIN_SENTENCES.sub(" ", plain.casefold())
    sentences = [" ".join(sentence.split()) for sentence in _SENTENCE.findall(bare)]
    return len(sentences) - len(set(sentences))


def _unbroken(text: str) -> Iterator[Loop]:
    """Loops of characters without a space, as "xyxyxy…"; of letters they count as one word."""
    for found in _UNBROKEN.finditer(text):
        ranks = np.frombuffer(found[0].encode("utf-32-le"), np.uint32).astype(np.int64)
        for first, stop, period in repetitions(ranks, *_LEAST):
            if stop - first - period >= _LEAST_UNBROKEN and not found[0][first:stop].isspace():
                yield _loop(text, found.start() + first, found.start() + stop, 1, (stop - first) // period)


def _loop(text: str, start: int, end: int, period: int, repeats: int) -> Loop:
    return Loop(start, end, period, repeats, round((end - start) / len(text), _SHARE_DIGITS))
