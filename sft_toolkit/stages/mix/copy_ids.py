"""Ids of the input that a copy would be given too: `a#2` in a mixture of what was mixed before."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sft_toolkit.draws import keys

_COPY = re.compile(r"(.*)#([1-9][0-9]{0,8})", re.DOTALL)


class CopyIds:
    """The ids that end as those of copies do, by the key of the id that they would be copies of: 16 bytes and a number.

    Two ids of one key, about one pair in 10^19, would only pass over numbers that are free.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._numbers: defaultdict[int, set[int]] = defaultdict(set)

    def add(self, ids: Iterable[str]) -> None:
        found = [match for name in ids if "#" in name and (match := _COPY.fullmatch(name))]
        originals = keys(self._seed, [match[1] for match in found], "mix")
        for key, match in zip(originals.tolist(), found, strict=True):
            self._numbers[key].add(int(match[2]))

    def occupied(self, row_keys: NDArray[np.uint64], copies: NDArray[np.uint32]) -> dict[int, frozenset[int]]:
        """By row of a block, the numbers that are taken; only rows of which copies are made. Both arrays: [n]."""
        if not self._numbers:
            return {}
        rows = np.flatnonzero(copies > 1).tolist()
        found = ((row, self._numbers.get(int(row_keys[row]))) for row in rows)
        return {row: frozenset(numbers) for row, numbers in found if numbers}
