"""The fields of a benchmark's items as words, and an index that finds them in texts.

A field is found where a text holds it word for word, or, changed, where its words stand in one stretch of the text.
Candidates for the second are the fields that share enough of their rarest words with a text; the alignment is that of
rapidfuzz over words, which changes of dress (case, LaTeX spacing, 12,5 or 12.5) do not touch.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final
from unicodedata import normalize

from rapidfuzz import fuzz

from sft_toolkit.labelers.function_words import LISTED, function_words
from sft_toolkit.stages.choosing.plain_words import SEPARATORS, TOKEN

SHORTEST: Final = 6
"""Words below which a field hits only where a whole turn equals it."""
SHINGLE: Final = 8
KEYS: Final = 12
"""The rarest words of a field by which it becomes a candidate."""
_SHARED_KEYS = 0.4
_CONTENT = 0.5
"""Share of a field's content words that an alignment must hold."""
_LATEX = re.compile(r"\\(?:left|right|quad|qquad|displaystyle|[,;:! ])|[$~]|\\(?=[a-zA-Z])")
_UNKNOWN = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an item: its words, normalised."""

    item: str
    file: str
    field: str
    words: tuple[str, ...]

    @property
    def is_short(self) -> bool:
        return len(self.words) < SHORTEST


@dataclass(frozen=True, slots=True)
class Found:
    """A field in a text: characters from start to end, how alike (0 to 1), and how it was found."""

    field: Field
    start: int
    end: int
    score: float
    how: str


@dataclass(frozen=True, slots=True)
class Words:
    """The normalised words of a text, and where each stands."""

    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    def span(self, first: int, last: int) -> tuple[int, int]:
        return self.spans[first][0], self.spans[last][1]


def words_of(text: str) -> Words:
    """Words, numbers and operators of a text; spacing of LaTeX is none of them."""
    blanked = _LATEX.sub(lambda match: " " * len(match[0]), text)
    words, spans = [], []
    for token in TOKEN.finditer(blanked):
        word = normalize("NFKC", token[0]).casefold()
        words.append(SEPARATORS.sub(".", word) if token["number"] else word)
        spans.append(token.span())
    return Words(tuple(words), tuple(spans))


class BenchmarkIndex:
    """Finds fields of at least `lowest` likeness in texts. It pickles as its fields alone."""

    def __init__(self, fields: Sequence[Field], lowest: float) -> None:
        self.fields = list(fields)
        self.lowest = lowest

    def __reduce__(self) -> tuple[Any, ...]:
        return BenchmarkIndex, (self.fields, self.lowest)

    def find(self, text: str) -> list[Found]:
        """The fields that a text holds, each once, the best first."""
        read = words_of(text)
        if not read.words:
            return []
        whole = (0, len(read.words) - 1)
        found = dict.fromkeys(self._whole.get(read.words, ()), (*whole, 1.0, "exact"))
        for number, first in self._verbatim(read.words):
            found.setdefault(number, (first, first + len(self.fields[number].words) - 1, 1.0, "shingles"))
        for number in self._candidates(read.words):
            if number not in found and (aligned := self._aligned(number, read.words)):
                found[number] = (*aligned, "fuzzy")
        hits = [
            Found(self.fields[number], *read.span(first, last), score, how)
            for number, (first, last, score, how) in found.items()
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.field.item, hit.field.field, hit.start))

    def _verbatim(self, words: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        for length, openings in self._openings.items():
            for first in range(len(words) - length + 1):
                for number in openings.get(words[first : first + length], ()):
                    wanted = self.fields[number].words
                    if words[first : first + len(wanted)] == wanted:
                        yield number, first

    def _candidates(self, words: tuple[str, ...]) -> list[int]:
        shared: Counter[int] = Counter()
        for word in set(words):
            shared.update(self._postings.get(word, ()))
        return sorted(number for number, count in shared.items() if count >= _SHARED_KEYS * self._key_counts[number])

    def _aligned(self, number: int, words: tuple[str, ...]) -> tuple[int, int, float] | None:
        """First and last word of the stretch that is most like the field, and how alike it is, if it is enough.

        Half of the share of words that are changed is taken off: of fields found by their rare words, the goal is to
        find those with three changed words, and unrelated texts share far fewer words in order.
        """
        wanted = self.fields[number].words
        coded, text = self._coded(wanted), self._coded(words)
        if len(text) < len(coded):
            score, first, last = fuzz.ratio(coded, text) / 100, 0, len(text) - 1
        else:
            best = fuzz.partial_ratio_alignment(coded, text, score_cutoff=100 * (2 * self.lowest - 1))
            if best is None:
                return None
            score, first, last = best.score / 100, best.dest_start, best.dest_end - 1
        alike = (1 + score) / 2
        if alike < self.lowest or not self._holds_content(number, words[first : last + 1]):
            return None
        return first, last, round(alike, 4)

    def _holds_content(self, number: int, stretch: tuple[str, ...]) -> bool:
        """Guards against sentences that share their frame alone: what is the … of …"""
        content = [word for word in self.fields[number].words if word not in _function_words()]
        held = set(stretch)
        return sum(word in held for word in content) >= _CONTENT * len(content) and bool(content)

    def _coded(self, words: Iterable[str]) -> str:
        """A character for each word, so that alignments run over words."""
        return "".join(self._codes.get(word, _UNKNOWN) for word in words)

    @cached_property
    def _codes(self) -> dict[str, str]:
        vocabulary = sorted({word for field in self.fields for word in field.words})
        return {
            word: chr(0x100 + number + (0x800 if number >= 0xD700 else 0)) for number, word in enumerate(vocabulary)
        }

    @cached_property
    def _whole(self) -> dict[tuple[str, ...], list[int]]:
        return _grouped((field.words, number) for number, field in enumerate(self.fields))

    @cached_property
    def _openings(self) -> dict[int, dict[tuple[str, ...], list[int]]]:
        by_length: dict[int, list[tuple[tuple[str, ...], int]]] = defaultdict(list)
        for number, field in enumerate(self.fields):
            if not field.is_short:
                length = min(SHINGLE, len(field.words))
                by_length[length].append((field.words[:length], number))
        return {length: _grouped(pairs) for length, pairs in sorted(by_length.items())}

    @cached_property
    def _keys(self) -> list[list[str]]:
        """The rarest words of each field, none of a short one."""
        frequency = Counter(word for field in self.fields for word in set(field.words))
        common = _function_words()
        return [
            []
            if field.is_short
            else sorted(set(field.words), key=lambda word: (word in common, frequency[word], word))[:KEYS]
            for field in self.fields
        ]

    @cached_property
    def _postings(self) -> dict[str, list[int]]:
        return _grouped((word, number) for number, keys in enumerate(self._keys) for word in keys)

    @cached_property
    def _key_counts(self) -> list[int]:
        return [len(keys) for keys in self._keys]


def _grouped(pairs: Iterable[tuple[Any, int]]) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = {}
    for key, number in pairs:
        found.setdefault(key, []).append(number)
    return found


@cache
def _function_words() -> frozenset[str]:
    return frozenset().union(*map(function_words, LISTED))
