"""Record ids seen so far, to tell a duplicate: 8 bytes an id, whatever its length."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import xxhash

from sft_toolkit.errors import ToolkitError
from sft_toolkit.shards.segments import open_arrow


class IdLedger:
    """Remembers a 64-bit hash of each id, in sorted runs that are merged as they grow.

    Two different ids of 22 million share a hash with probability 1.3e-5.
    """

    def __init__(self) -> None:
        self._runs: list[np.ndarray] = []

    def add(self, ids: Sequence[str]) -> None:
        """Add the ids of one block. Raises ToolkitError naming the first id that was there before."""
        hashes = np.fromiter((xxhash.xxh3_64_intdigest(text.encode()) for text in ids), np.uint64, len(ids))
        order = np.argsort(hashes, kind="stable")
        run = hashes[order]
        repeated = order[1:][run[1:] == run[:-1]]
        for earlier in self._runs:
            places = np.minimum(np.searchsorted(earlier, run), len(earlier) - 1)
            repeated = np.concatenate([repeated, order[earlier[places] == run]])
        if len(repeated):
            raise ToolkitError(
                f"record id {ids[int(repeated.min())]!r} occurs more than once",
                "draws depend on ids: make them unique (records without one get it from their content: remove repeats)",
            )
        if len(run):
            self._merge(run)

    def _merge(self, run: np.ndarray) -> None:
        while self._runs and len(self._runs[-1]) <= len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        self._runs.append(run)


def shard_ids(path: Path) -> list[str]:
    """The `id` column of a shard."""
    with pa.memory_map(str(path)) as source:
        return [text for batch in open_arrow(path, source) for text in batch.column("id").to_pylist()]
