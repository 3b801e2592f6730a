"""What every packer returns: which documents share a sequence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_CAPACITY = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Packing:
    """Documents grouped into sequences, in compressed row form.

    Sequence s holds documents `documents[offsets[s] : offsets[s + 1]]`, in the order they came.

    documents: int64[n], each document's index exactly once
    offsets: int64[sequences + 1], from 0 to n
    """

    documents: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def from_bins(cls, bin_of: NDArray[np.int32], bins: int) -> Packing:
        """Group documents by `bin_of`: int32[n], the bin of each document; every bin in 0 … bins-1 holds one."""
        offsets = np.zeros(bins + 1, np.int64)
        np.cumsum(np.bincount(bin_of, minlength=bins), out=offsets[1:])
        return cls(np.argsort(bin_of, kind="stable"), offsets)

    @property
    def sequences(self) -> int:
        return len(self.offsets) - 1

    def sums(self, values: NDArray[np.integer]) -> NDArray[np.int64]:
        """Sum of a per-document value over each sequence: int64[sequences]."""
        if not self.sequences:
            return np.zeros(0, np.int64)
        return np.add.reduceat(values[self.documents], self.offsets[:-1], dtype=np.int64)


def checked_lengths(lengths: ArrayLike, capacity: int) -> NDArray[np.int64]:
    """`lengths` as int64[n], tokens.

    Raises ValueError, naming the first document at fault, unless 1 <= length <= capacity throughout; boundaries of
    documents are stored as int32, so capacity ends there.
    """
    if not 1 <= capacity <= MAX_CAPACITY:
        raise ValueError(f"capacity must be 1 … {MAX_CAPACITY} tokens, not {capacity}")
    array = np.asarray(lengths, np.int64)
    if array.ndim != 1:
        raise ValueError(f"lengths must have one dimension, not {array.ndim}")
    wrong = np.flatnonzero((array < 1) | (array > capacity))
    if wrong.size:
        raise ValueError(f"document {wrong[0]} has {array[wrong[0]]} tokens, outside 1 … {capacity}")
    return array
