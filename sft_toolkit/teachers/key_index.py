"""Where each reply of a journal stands: 16 bytes a reply, saved beside the journal so that workers can map it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sft_toolkit.shards.atomic import atomic_path

_UNSORTED = 1 << 16
_FILE_SHIFT = 44


def place(file: int, offset: int) -> int:
    """A file's number and a byte offset (below 16 TiB) as one integer; earlier files come first."""
    return file << _FILE_SHIFT | offset


def parts_of(found: int) -> tuple[int, int]:
    """The file's number and the byte offset of a place."""
    return found >> _FILE_SHIFT, found & ((1 << _FILE_SHIFT) - 1)


class KeyIndex:
    """Key to place. Of a key that stands in several places the first one counts.

    Keys are the first 64 bits of the 128 of a reply's key: the chance that two of 10 million replies share them
    is 3e-6, and the reader compares the whole key.
    """

    def __init__(self, table: np.ndarray | None = None) -> None:
        self._table = np.empty((2, 0), np.uint64) if table is None else table
        self._new: dict[int, int] = {}

    def __len__(self) -> int:
        return self._table.shape[1] + len(self._new)

    def add(self, key: str, where: int) -> None:
        self._new.setdefault(_short(key), where)
        if len(self._new) >= _UNSORTED:
            self._sort()

    def find(self, key: str) -> int | None:
        short = _short(key)
        if short in self._new:
            return self._new[short]
        keys = self._table[0]
        at = int(np.searchsorted(keys, np.uint64(short)))
        return int(self._table[1, at]) if at < len(keys) and int(keys[at]) == short else None

    def save(self, path: Path) -> None:
        self._sort()
        with atomic_path(path) as temporary:
            temporary.touch(0o600)
            with temporary.open("wb") as file:
                np.save(file, self._table)

    @classmethod
    def load(cls, path: Path) -> KeyIndex:
        return cls(np.load(path, mmap_mode="r"))

    def _sort(self) -> None:
        """Bring what is new into the table: uint64[2, n], keys in order over their places."""
        keys = np.concatenate([self._table[0], np.fromiter(self._new.keys(), np.uint64, len(self._new))])
        places = np.concatenate([self._table[1], np.fromiter(self._new.values(), np.uint64, len(self._new))])
        order = np.lexsort((places, keys))
        keys, places = keys[order], places[order]
        first = np.concatenate([[True], keys[1:] != keys[:-1]]) if len(keys) else np.empty(0, bool)
        self._table, self._new = np.stack([keys[first], places[first]]), {}


def _short(key: str) -> int:
    return int(key[:16], 16)
