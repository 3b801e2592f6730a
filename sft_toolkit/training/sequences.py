"""Packed sequences, read from memory-mapped shards: opening a folder reads its index, never its tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sft_toolkit.errors import ToolkitError
from sft_toolkit.packers import FILLER
from sft_toolkit.shards.packed_index import PackedIndex, read_index
from sft_toolkit.shards.segments import ARROW_FAULTS, validated
from sft_toolkit.shards.shard_folder import ShardFolder


@dataclass(frozen=True, slots=True)
class PackedSequence:
    """Documents end to end.

    input_ids: int32[T]; loss_mask: bool[T], true where a token is a target; cu_seqlens: int32[D + 1], 0 … T;
    ids: the documents' names
    """

    input_ids: NDArray[np.int32]
    loss_mask: NDArray[np.bool_]
    cu_seqlens: NDArray[np.int32]
    ids: list[str]

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Tokens of each document: int32[D]."""
        return np.diff(self.cu_seqlens)


NOTHING = PackedSequence(np.zeros(1, np.int32), np.zeros(1, np.bool_), np.array([0, 1], np.int32), [])
"""What a rank reads where a plan has FILLER: one token and no loss, so that it computes along with the others."""


class PackedFolder:
    """The sequences of a finished packed folder, by number. Picklable: shards are mapped where they are read.

    Raises ToolkitError where the folder is unfinished, of another schema, cut, or holds no sequence.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.folder = ShardFolder(path, "packed")
        self.index: PackedIndex = read_index(self.path)
        if not len(self.index.cost):
            raise ToolkitError(f"{path}: no sequences", "was anything packed?")
        if len(self.index.cost) != self.folder.rows:
            raise ToolkitError(f"{path}: its index does not match its shards", "pack the folder again")
        self._shards: dict[int, _MappedShard] = {}

    def __reduce__(self) -> tuple[type[PackedFolder], tuple[Path]]:
        return type(self), (self.path,)

    def __len__(self) -> int:
        return len(self.index.cost)

    def sequence(self, number: int) -> PackedSequence:
        """One sequence; NOTHING for FILLER. Raises ToolkitError where the shard is damaged."""
        if number == FILLER:
            return NOTHING
        shard = self._shard(int(self.index.shard[number]))
        found = shard.read(int(self.index.row[number]))
        expected = self.index.tokens[number], self.index.loss_tokens[number]
        if (len(found.input_ids), np.count_nonzero(found.loss_mask)) != expected:
            raise _damaged(shard.path, f"sequence {number} does not match the index")
        if found.cu_seqlens[-1] != expected[0] or found.loss_mask[found.cu_seqlens[:-1]].any():
            raise _damaged(shard.path, f"sequence {number} has loss on a document's first token, or wrong boundaries")
        return found

    def longest_document(self, number: int) -> int:
        """Tokens of the longest document in a sequence, which its tokens need not be read for."""
        shard = self._shard(int(self.index.shard[number]))
        return int(np.diff(shard.boundaries(int(self.index.row[number]))).max())

    def pairs_within(self, window: int) -> NDArray[np.float64]:
        """Twice the pairs of a token and one that it sees, itself and window - 1 before, in each sequence: float64[n].

        Reads the boundaries of all documents, and no token.
        """
        found = np.zeros(len(self))
        for number in range(len(self.folder.paths)):
            of_shard = np.flatnonzero(self.index.shard == number)
            found[of_shard] = self._shard(number).pairs_within(window)[self.index.row[of_shard]]
        return found

    def verify(self, shards: Iterable[int]) -> None:
        """Raise ToolkitError where the bytes of one of these shards are not those that were written."""
        self.folder.verify(shards)

    def _shard(self, number: int) -> _MappedShard:
        if number not in self._shards:
            self._shards[number] = _MappedShard(self.folder.paths[number])
        return self._shards[number]


class _MappedShard:
    """Rows of an Arrow file, as views of its mapped pages."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def _batches(self) -> list[pa.RecordBatch]:
        try:
            reader = pa.ipc.open_file(pa.memory_map(str(self.path)))
            batches = map(reader.get_batch, range(reader.num_record_batches))
            return [validated(self.path, batch, "packed") for batch in batches]
        except ARROW_FAULTS as fault:
            raise _damaged(self.path, str(fault)) from fault

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum([batch.num_rows for batch in self._batches])

    def read(self, row: int) -> PackedSequence:
        tokens, mask, bounds, ids = self._values(row, "input_ids", "loss_mask", "cu_seqlens", "ids")
        return PackedSequence(
            tokens.to_numpy(), mask.to_numpy(zero_copy_only=False), bounds.to_numpy(), ids.to_pylist()
        )

    def boundaries(self, row: int) -> NDArray[np.int32]:
        (bounds,) = self._values(row, "cu_seqlens")
        return bounds.to_numpy()

    def pairs_within(self, window: int) -> NDArray[np.float64]:
        """Of every row: float64[rows]."""
        parts = []
        for batch in self._batches:
            bounds = batch.column("cu_seqlens")
            ends, values = bounds.offsets.to_numpy(), bounds.values.to_numpy().astype(np.float64)
            lengths = np.append(np.diff(values), 0.0)
            lengths[ends[1:] - 1] = 0  # from one row's last boundary to the next one's first
            near = np.minimum(lengths, window)
            pairs = np.append(0.0, np.cumsum(near * (near + 1) + 2 * window * (lengths - near)))
            parts.append(pairs[ends[1:]] - pairs[ends[:-1]])
        return np.concatenate(parts)

    def _values(self, row: int, *columns: str) -> list[pa.Array]:
        number = int(np.searchsorted(self._ends, row, side="right"))
        if number == len(self._batches):
            raise _damaged(self.path, f"it has no row {row}")
        batch = self._batches[number]
        return [batch.column(name)[row - int(self._ends[number])].values for name in columns]


def _damaged(path: Path, how: str) -> ToolkitError:
    return ToolkitError(f"{path}: damaged: {how}", "copy it again, or pack the folder again")
