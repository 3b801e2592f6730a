"""Where a sequence repeats with a period, by prefix doubling (Karp, Miller and Rosenberg 1972).

For k = 1, 2, 4, … every place gets the rank of the k items that begin there, and its distance to the last place of the
same rank. Within a sequence of period p <= k that distance is p itself, so a repetition is a stretch of places with one
distance. The number of sorts is bounded by MAX_PERIOD, so time grows with the length of the sequence.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

MAX_PERIOD = 4096
"""Items of the longest period that is looked for."""

Ranks = npt.NDArray[np.int64]


def repetitions(ranks: Ranks, repeats: int, redundant: int) -> Iterator[tuple[int, int, int]]:
    """(first, stop, period) of every stretch in which ranks[i] == ranks[i - period] throughout.

    Only those of `repeats` periods at least, and of `redundant` items beyond the first period. `ranks`: int64[items],
    equal for equal items.

    >>> list(repetitions(np.array([7, 1, 2, 1, 2, 1, 2, 1, 2, 9]), 4, 6))
    [(1, 9, 2)]
    """
    size = 1
    longest = min(MAX_PERIOD, len(ranks) // repeats)
    while size < 2 * longest:
        order = np.argsort(ranks, kind="stable")
        again = np.flatnonzero(ranks[order[1:]] == ranks[order[:-1]])
        if not again.size:
            return
        distance = np.zeros(len(ranks), np.int64)
        distance[order[again + 1]] = order[again + 1] - order[again]
        edges = np.flatnonzero(np.diff(distance, prepend=0, append=0))
        begins, ends = edges[:-1], edges[1:]
        periods = distance[begins]
        firsts, stops = begins - periods, ends - 1 + size
        fits = (periods > size // 2) & (periods <= size) & (stops - firsts >= repeats * periods)
        fits &= stops - firsts - periods >= redundant
        yield from zip(firsts[fits].tolist(), stops[fits].tolist(), periods[fits].tolist(), strict=True)
        size, ranks = 2 * size, _ranks_of_pairs(ranks, size)


def _ranks_of_pairs(ranks: Ranks, size: int) -> Ranks:
    """Ranks of 2 * `size` words, from those of `size` words: int64[places - size]."""
    pairs = ranks[:-size] * (int(ranks.max()) + 1) + ranks[size:]
    return np.unique(pairs, return_inverse=True)[1].astype(np.int64)
