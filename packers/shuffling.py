"""Random orders that a seed fixes for good.

NumPy may change what its generators' methods draw from one version to the next, and then a resumed run would see other
data. Here a shuffle sorts by SplitMix64 outputs (Steele, Lea and Flood 2014), which are plain integer arithmetic.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def _mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


class Shuffler:
    """A stream of shuffles that the integers of its key determine, on every rank and machine alike."""

    def __init__(self, *key: int) -> None:
        self._state = np.zeros(1, np.uint64)
        for part in key:
            self._state = _mix(self._state + _GAMMA + np.uint64(part % 2**64))

    def draws(self, count: int) -> NDArray[np.uint64]:
        """The next `count` pseudo-random integers: uint64[count]."""
        counters = self._state + _GAMMA * np.arange(1, count + 1, dtype=np.uint64)
        self._state = counters[-1:] if count else self._state
        return _mix(counters)

    def permutation(self, n: int) -> NDArray[np.int64]:
        """A random order of 0 … n-1: int64[n]."""
        return np.argsort(self.draws(n), kind="stable")

    def permuted_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """`rows`: int64[…, n] with each row in a random order of its own."""
        return np.take_along_axis(rows, np.argsort(self.draws(rows.size).reshape(rows.shape), axis=-1), axis=-1)
