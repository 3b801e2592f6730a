"""Record ids seen so far, to tell a duplicate: 8 bytes an id, whatever its length."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from sft_toolkit.errors import ToolkitError
from sft_toolkit.shards.segments import open_arrow

REPEATED = "`duplicates=drop` leaves out exact repeats, `duplicates=number` makes ids unique"


class RepeatedId(ToolkitError):
    """An id that occurs twice where it must not. `record`: whose document or copy may be called so, or empty."""

    def __init__(self, identity: str) -> None:
        record, _, number = identity.rpartition("#")
        self.record = record if number.isdecimal() else ""
        if self.record:
            super().__init__(
                f"id {identity!r} occurs more than once: it is also what a document or copy of {record!r} is called",
                f"give one of {identity!r} and {record!r} another id",
            )
        else:
            super().__init__(f"record id {identity!r} occurs more than once", REPEATED)
        self.identity = identity

    def __reduce__(self) -> tuple[type[RepeatedId], tuple[str]]:  # type: ignore[override]
        return type(self), (self.identity,)


class IdLedger:
    """Remembers a 64-bit hash of each id, in sorted runs that are merged as they grow.

    Two different ids of 22 million share a hash with probability 1.3e-5.
    """

    def __init__(self) -> None:
        self._runs: list[np.ndarray] = []

    def add(self, ids: Sequence[str]) -> None:
        """Add the ids of one block. Raises RepeatedId naming the first id that was there before."""
        hashes = np.fromiter((xxhash.xxh3_64_intdigest(text.encode()) for text in ids), np.uint64, len(ids))
        repeated = np.flatnonzero(self.seen(hashes))
        if len(repeated):
            raise RepeatedId(ids[int(repeated[0])])

    def seen(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Add the hashes of one block; True for those that were there before, in this block or an earlier one."""
        order = np.argsort(hashes, kind="stable")
        run = hashes[order]
        repeated = order[1:][run[1:] == run[:-1]]
        for earlier in self._runs:
            places = np.minimum(np.searchsorted(earlier, run), len(earlier) - 1)
            repeated = np.concatenate([repeated, order[earlier[places] == run]])
        found = np.zeros(len(hashes), np.bool_)
        found[repeated] = True
        if len(run):
            self._merge(run)
        return found

    def _merge(self, run: np.ndarray) -> None:
        while self._runs and len(self._runs[-1]) <= len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        self._runs.append(run)


def shard_ids(path: Path) -> list[str]:
    """The `id` column of a shard."""
    with pa.memory_map(str(path)) as source:
        return [text for batch in open_arrow(path, source) for text in batch.column("id").to_pylist()]
