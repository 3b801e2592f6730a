"""How far a pass over the input is, while its blocks are under way: every process appends what it has done to one file.

Appending a few bytes is atomic, so that workers need no lock and no channel of their own; a worker on another machine,
which does not see the file, adds nothing. Only what a person sees depends on it.
"""

from __future__ import annotations

import os
import struct
import tempfile
import time
from typing import NamedTuple

_SECONDS_BETWEEN_ENTRIES = 0.1
_ENTRY = struct.Struct("<qqq")


class Done(NamedTuple):
    """Rows read and processed, the bytes of input that these stand for, and the bytes passed over as done before."""

    rows: int = 0
    size: int = 0
    skipped: int = 0


class Meter:
    """Counts what is done; one that `started` made is looked at by `done`, in the process that made it."""

    def __init__(self, path: str = "") -> None:
        self._path = path
        self._file: int | None = None
        self._rows = self._size = self._skipped = 0
        self._next = 0.0
        self._read = 0
        self._done = self._before = Done()
        self.total: int | None = None
        """Bytes of all input of this pass, where they are known."""
        self.begun = time.monotonic()

    @classmethod
    def started(cls) -> Meter:
        """A meter with a file of its own, which `close` removes."""
        descriptor, path = tempfile.mkstemp(prefix="kolibri-sft-progress-")
        os.close(descriptor)
        return cls(path)

    def __reduce__(self) -> tuple[type[Meter], tuple[str]]:
        return type(self), (self._path,)

    def begin(self, total: int | None) -> None:
        """A pass over `total` bytes begins."""
        self._before = self._sum()
        self.total = total
        self.begun = time.monotonic()

    def add(self, rows: int, size: int, *, skipped: int = 0) -> None:
        """Count rows as processed, or the bytes of a block as skipped."""
        if not self._path:
            return
        self._rows += rows
        self._size += size
        self._skipped += skipped
        if (now := time.monotonic()) >= self._next:
            self._next = now + _SECONDS_BETWEEN_ENTRIES
            self.flush()

    def flush(self) -> None:
        """Let others see all that was added."""
        if not (self._rows or self._size or self._skipped):
            return
        if self._file is None:
            try:
                self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND)
            except OSError:
                self._path = ""
                return
        os.write(self._file, _ENTRY.pack(self._rows, self._size, self._skipped))
        self._rows = self._size = self._skipped = 0

    def done(self) -> Done:
        """What all processes have done of the pass that was begun last."""
        return Done(*(now - before for now, before in zip(self._sum(), self._before, strict=True)))

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
        if self._path:
            os.unlink(self._path)
        self._path, self._file = "", None

    def _sum(self) -> Done:
        if self._path:
            with open(self._path, "rb") as file:
                file.seek(self._read)
                entries = file.read()
            whole = len(entries) - len(entries) % _ENTRY.size
            self._read += whole
            for entry in _ENTRY.iter_unpack(entries[:whole]):
                self._done = Done(*(held + more for held, more in zip(self._done, entry, strict=True)))
        return self._done
