"""Clusters of like records, found band by band with what lies in files: memory holds a few numbers a record."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

_ALL_PAIRS = 128
"""Records of one band that are all compared; in a larger one each is compared with as many that follow it."""
_REMEMBERED = 1_000_000


class TextFile:
    """Texts by number, appended to a file and read from it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb")
        self._ends = array("Q", [0])
        self._bytes: npt.NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        self._file.write(data)
        self._ends.append(self._ends[-1] + len(data))

    def __getitem__(self, index: int) -> str:
        if self._bytes is None:
            self._file.close()
            self._bytes = np.memmap(self._path, np.uint8, "r") if self._ends[-1] else np.empty(0, np.uint8)
        return self._bytes[self._ends[index] : self._ends[index + 1]].tobytes().decode("utf-8", "surrogatepass")


class BandFiles:
    """The hashes of each band, one file a band, with the number of the record that each belongs to."""

    def __init__(self, folder: Path, count: int) -> None:
        self._paths = [folder / f"band-{index}" for index in range(count)]
        self._files = [path.open("wb") for path in self._paths]
        self._records = array("Q")

    def add(self, records: npt.NDArray[np.uint64], hashes: npt.NDArray[np.uint64]) -> None:
        """records: uint64[n]; hashes: uint64[n, bands]."""
        self._records.frombytes(records.astype(np.uint64).tobytes())
        for file, column in zip(self._files, hashes.T, strict=True):
            file.write(np.ascontiguousarray(column).tobytes())

    def shared(self) -> Iterator[npt.NDArray[np.int64]]:
        """The records that share a hash, one array for each hash that several share."""
        records = np.frombuffer(self._records, np.uint64).astype(np.int64)
        for path, file in zip(self._paths, self._files, strict=True):
            file.close()
            yield from equal_runs(np.fromfile(path, np.uint64), records)
            path.unlink()


def equal_runs(hashes: npt.NDArray[np.uint64], records: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """The records of each hash that occurs more than once."""
    order = np.argsort(hashes, kind="stable")
    ranked = hashes[order]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]])) if len(ranked) else np.empty(0, int)
    lengths = np.diff(np.append(starts, len(ranked)))
    for start, length in zip(starts[lengths > 1].tolist(), lengths[lengths > 1].tolist(), strict=True):
        yield records[order[start : start + length]]


class Clusters:
    """Which of `count` records are connected."""

    def __init__(self, count: int) -> None:
        self._parent = np.arange(count, dtype=np.int64)
        self._refused: set[tuple[int, int]] = set()

    def find(self, record: int) -> int:
        parent = self._parent
        while parent[record] != record:
            parent[record] = parent[parent[record]]
            record = int(parent[record])
        return record

    def join(self, record: int, other: int) -> None:
        a, b = self.find(record), self.find(other)
        self._parent[max(a, b)] = min(a, b)

    def connect(
        self, run: npt.NDArray[np.int64], alike: Callable[[int, int], bool], rank: Callable[[int], bytes]
    ) -> None:
        """Join what is alike of a run of candidates; which pairs are compared depends on what the records hold."""
        if len(run) > _ALL_PAIRS:
            run = np.array(sorted(run.tolist(), key=rank), np.int64)
        members = run.tolist()
        for place, record in enumerate(members):
            for other in members[place + 1 : place + 1 + _ALL_PAIRS]:
                pair = (min(record, other), max(record, other))
                if pair in self._refused or self.find(record) == self.find(other):
                    continue
                if alike(record, other):
                    self.join(record, other)
                elif len(self._refused) < _REMEMBERED:
                    self._refused.add(pair)

    def groups(self) -> Iterator[npt.NDArray[np.int64]]:
        """The records of each cluster of two or more, in ascending order."""
        roots = np.fromiter(map(self.find, range(len(self._parent))), np.uint64, len(self._parent))
        yield from equal_runs(roots, np.arange(len(roots), dtype=np.int64))
