"""Lengths kept between the two passes of `effort label`, so that no trace is tokenised twice."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sft_toolkit.conversation import Conversation
from sft_toolkit.draws import keys
from sft_toolkit.shards.ids import IdLedger
from sft_toolkit.stages.effort.lengths import Identity, Lengths, LengthSource

_KEYS, _STARTS, _LENGTHS = "keys.npy", "starts.npy", "lengths.npy"


class LengthStore:
    """Collects the lengths of each record under the hash of its id: some 12 bytes a record and 4 an exchange."""

    def __init__(self) -> None:
        self._ledger = IdLedger()
        self._keys = [np.empty(0, np.uint64)]
        self._counts = [np.empty(0, np.int32)]
        self._lengths = [np.empty(0, np.int32)]

    def add(self, ids: Sequence[str], lengths: Sequence[Sequence[int]]) -> None:
        """Keep the lengths of one block's records. Raises ToolkitError for an id that was there before."""
        self._ledger.add(ids)
        self._keys.append(_hashes(ids))
        self._counts.append(np.fromiter(map(len, lengths), np.int32, len(lengths)))
        self._lengths.append(np.array([length for record in lengths for length in record], np.int32))

    def save(self, folder: Path, source: LengthSource) -> RememberedLengths:
        """Write the lengths, which `source` measured, to files in `folder` that all workers map into memory.

        Ids that share a hash are left out, so that `source` measures them again.
        """
        hashes, first, occurrences = np.unique(np.concatenate(self._keys), return_index=True, return_counts=True)
        counts = np.concatenate(self._counts)
        starts = counts.cumsum(dtype=np.int64) - counts
        alone = occurrences == 1
        np.save(folder / _KEYS, hashes[alone])
        np.save(folder / _STARTS, starts[first[alone]])
        np.save(folder / _LENGTHS, np.concatenate(self._lengths))
        return RememberedLengths(source, str(folder))


@dataclass(frozen=True)
class RememberedLengths:
    """Lengths that a LengthStore saved; what it does not hold (faulty records) is measured by `source` again."""

    source: LengthSource
    folder: str

    @property
    def identity(self) -> Identity:
        return self.source.identity

    def measure(self, batch: list[Conversation]) -> Iterator[Lengths]:
        hashes = _hashes([conversation.id for conversation in batch])
        places = np.searchsorted(self._keys, hashes)
        known = np.take(self._keys, places, mode="clip") == hashes if len(self._keys) else np.zeros(len(batch), bool)
        unknown = self.source.measure(list(itertools.compress(batch, ~known)))
        for conversation, place, there in zip(batch, places, known, strict=True):
            yield self._lengths_from(int(self._starts[place]), conversation) if there else next(unknown)

    def _lengths_from(self, start: int, conversation: Conversation) -> list[int]:
        return self._lengths[start : start + len(conversation.exchanges())].tolist()

    @cached_property
    def _keys(self) -> npt.NDArray[np.uint64]:
        return np.load(Path(self.folder, _KEYS), mmap_mode="r")

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        return np.load(Path(self.folder, _STARTS), mmap_mode="r")

    @cached_property
    def _lengths(self) -> npt.NDArray[np.int32]:
        return np.load(Path(self.folder, _LENGTHS), mmap_mode="r")


def _hashes(ids: Sequence[str]) -> npt.NDArray[np.uint64]:
    return keys(0, ids, "lengths of reasoning")
