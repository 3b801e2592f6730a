"""What a first pass found, by key, in files that all workers map into memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from sft_toolkit.json_text import decode, encode


def digest(text: str) -> bytes:
    return xxhash.xxh3_128_digest(text.encode())


class FactWriter:
    """Collects JSON values by key: 24 bytes a key in memory, the values in a file `name` of `folder`."""

    def __init__(self, folder: Path, name: str) -> None:
        self._base = folder / name
        self._values = self._base.with_suffix(".values").open("wb")
        self._keys = bytearray()
        self._ends = [0]

    def add(self, key: str, value: Any) -> None:
        text = encode(value)
        self._values.write(text)
        self._keys += digest(key)
        self._ends.append(self._ends[-1] + len(text))

    def save(self) -> Facts:
        """Close the files; they can be read from here on. Of a key that was added twice the first value counts."""
        self._values.close()
        keys = np.frombuffer(bytes(self._keys), "S16")
        order = np.argsort(keys, kind="stable")
        ends = np.array(self._ends, np.int64)
        np.save(self._base.with_suffix(".keys.npy"), keys[order])
        np.save(self._base.with_suffix(".places.npy"), np.stack([ends[:-1][order], ends[1:][order]], axis=1))
        return Facts(str(self._base))


@dataclass(frozen=True)
class Facts:
    """Values by key, read from the files that a FactWriter wrote under `base`."""

    base: str

    def get(self, key: str) -> Any:
        """The value of a key, None where it has none."""
        wanted = np.array(digest(key), "S16")
        place = int(np.searchsorted(self._keys, wanted))
        if place == len(self._keys) or self._keys[place] != wanted:
            return None
        begin, end = self._places[place].tolist()
        return decode(self._values[begin:end].tobytes())

    @cached_property
    def _keys(self) -> npt.NDArray[np.bytes_]:
        return np.load(f"{self.base}.keys.npy", mmap_mode="r")

    @cached_property
    def _places(self) -> npt.NDArray[np.int64]:
        return np.load(f"{self.base}.places.npy", mmap_mode="r")

    @cached_property
    def _values(self) -> npt.NDArray[np.uint8]:
        return np.memmap(f"{self.base}.values", np.uint8, "r")
