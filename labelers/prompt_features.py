"""What a student sees of a prompt: its n-grams, hashed, and a few numbers about its surface.

Hashing keeps no vocabulary: 16 bits tell n-grams apart well enough for a linear model, and two runs on different data
have the same columns. The surface (how long, how many numbers, clauses, operators) is what carries over to data sets
that a student has not seen; n-grams mostly learn which data set a prompt is from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer

BUCKETS = 1 << 16
MOST_CHARACTERS = 20_000
"""Of a longer prompt, the first and last halves of so many characters count."""

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")
_CLAUSE = re.compile(r"[,;:]|[.!?](?=\s|$)")
_OPERATOR = re.compile(r"[-+*/=<>^%∑∫√≤≥∀∃]")
_BRACKET = re.compile(r"[()\[\]{}]")

SURFACE = (
    "characters", "words", "distinct_words", "word_length", "longest_word", "numbers", "longest_number", "digits",
    "digit_share", "lines", "longest_line", "clauses", "operators", "brackets", "upper_share",
)  # fmt: skip
"""Names of the surface's columns; counts and lengths are log(1 + x)."""

Matrix: TypeAlias = sparse.csr_matrix


def ngrams(texts: Sequence[str]) -> Matrix:
    """Counts of the words, marks and pairs of neighbours in each text: float32[n, BUCKETS], sparse."""
    vectorizer = HashingVectorizer(
        ngram_range=(1, 2),
        n_features=BUCKETS,
        alternate_sign=False,
        norm=None,
        token_pattern=r"\w+|[^\w\s]",
        dtype=np.float32,
    )
    return vectorizer.transform([shortened(text) for text in texts])


def surface(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """The columns of SURFACE for each text: float64[n, len(SURFACE)]."""
    return np.array([_surface(shortened(text)) for text in texts]).reshape(len(texts), len(SURFACE))


def shortened(text: str) -> str:
    """The text, or the beginning and the end of a long one."""
    half = MOST_CHARACTERS // 2
    return text if len(text) <= MOST_CHARACTERS else f"{text[:half]}\n{text[-half:]}"


def _surface(text: str) -> list[float]:
    words = _WORD.findall(text)
    numbers = [len(number) for number in _NUMBER.findall(text)]
    counts = {
        "characters": len(text),
        "words": len(words),
        "distinct_words": len(set(words)),
        "word_length": sum(map(len, words)) / max(len(words), 1),
        "longest_word": max(map(len, words), default=0),
        "numbers": len(numbers),
        "longest_number": max(numbers, default=0),
        "digits": sum(numbers),
        "lines": text.count("\n"),
        "longest_line": max(map(len, text.split("\n"))),
        "clauses": len(_CLAUSE.findall(text)),
        "operators": len(_OPERATOR.findall(text)),
        "brackets": len(_BRACKET.findall(text)),
    }
    shares = {
        "digit_share": sum(numbers) / max(len(text), 1),
        "upper_share": sum(map(str.isupper, text)) / max(len(text), 1),
    }
    return [shares[name] if name in shares else float(np.log1p(counts[name])) for name in SURFACE]
