"""Which data sets speak alike: hashed word n-grams, weighted by how few data sets use them, clustered by cosine.

A help for choosing the clusters of MergeMix: lexical likeness is not likeness of skill.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from sft_toolkit.errors import UsageError
from sft_toolkit.mergemix.rank_correlation import Floats

DIMENSIONS = 1 << 16
_WORD = re.compile(r"\w+")

NgramCounts = NDArray[np.int64]
"""How often the n-grams that hash to each of DIMENSIONS places occur."""


def count_ngrams(texts: Iterable[str]) -> NgramCounts:
    """Words and pairs of neighbouring words, in lower case."""
    found: Counter[str] = Counter()
    for text in texts:
        words = _WORD.findall(text.lower())
        found.update(words)
        found.update(f"{first} {second}" for first, second in pairwise(words))
    places = np.fromiter((xxh3_64_intdigest(ngram.encode()) % DIMENSIONS for ngram in found), np.int64, len(found))
    counts = np.zeros(DIMENSIONS, np.int64)
    np.add.at(counts, places, np.fromiter(found.values(), np.int64, len(found)))
    return counts


def similarities(counts: Sequence[NgramCounts]) -> Floats:
    """Cosines of log(1 + count) * log((1 + n) / (1/2 + data sets that use it)): float64[n, n], 0 for an empty one."""
    table = np.array(counts)
    rarity = np.log((1 + len(counts)) / (0.5 + (table > 0).sum(axis=0)))
    weighted = np.log1p(table) * rarity
    lengths = np.linalg.norm(weighted, axis=1, keepdims=True)
    unit = weighted / np.where(lengths > 0, lengths, 1)
    return unit @ unit.T


@dataclass(frozen=True, slots=True)
class Cluster:
    """Data sets and the mean cosine among them, 1 for a single one."""

    datasets: tuple[str, ...]
    cohesion: float


def cluster_datasets(counts: Mapping[str, NgramCounts], number: int) -> list[Cluster]:
    """Join the two clusters with the largest mean cosine until `number` are left. Largest cluster first."""
    names = sorted(counts)
    if not 1 <= number <= len(names):
        raise UsageError(f"{len(names)} data sets do not make {number} clusters", "name between 1 and that many")
    cosines = similarities([counts[name] for name in names])
    groups = [[place] for place in range(len(names))]
    while len(groups) > number:
        first, second = max(_pairs(len(groups)), key=lambda pair: _likeness(cosines, groups[pair[0]], groups[pair[1]]))
        groups[first] = sorted(groups[first] + groups.pop(second))
    found = [Cluster(tuple(names[place] for place in group), _cohesion(cosines, group)) for group in groups]
    return sorted(found, key=lambda cluster: (-len(cluster.datasets), cluster.datasets))


def _pairs(count: int) -> Iterator[tuple[int, int]]:
    return ((first, second) for first in range(count) for second in range(first + 1, count))


def _likeness(cosines: Floats, one: Sequence[int], two: Sequence[int]) -> float:
    return float(cosines[np.ix_(one, two)].mean())


def _cohesion(cosines: Floats, group: Sequence[int]) -> float:
    if len(group) == 1:
        return 1.0
    inner = cosines[np.ix_(group, group)]
    return float((inner.sum() - np.trace(inner)) / (len(group) * (len(group) - 1)))
