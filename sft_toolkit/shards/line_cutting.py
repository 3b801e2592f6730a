"""JSONL cut at rows: as ranges of a file that can be read from the middle, or as copies of what comes in chunks."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sft_toolkit.shards.atomic import explained
from sft_toolkit.shards.opening import FileChunks
from sft_toolkit.shards.segments import LineRange, Segment

Remaining = Callable[[], int]
"""How many more rows the block under way takes."""

_SCAN_BYTES = 8 << 20
_LINE_FEED, _CARRIAGE_RETURN = b"\n\r"


class _LineScan:
    """Finds the lines of a stream that comes in chunks, and which of them are rows: blank lines are none."""

    def __init__(self) -> None:
        self._open = 0
        """Bytes of the line that the last chunk left without its end."""
        self._last = 0

    @property
    def within_a_line(self) -> bool:
        return self._open > 0

    def lines(self, chunk: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Per line that ends in this chunk, where it ends and how many rows there are up to it: int64[n] both."""
        given = np.frombuffer(chunk, np.uint8)
        ends = 1 + np.flatnonzero(given == _LINE_FEED)
        lengths = np.diff(ends, prepend=-self._open)
        is_row = lengths > 1
        short = np.flatnonzero(lengths == 2)
        is_row[short] = np.where(ends[short] > 1, given[ends[short] - 2], self._last) != _CARRIAGE_RETURN
        self._open = len(chunk) - int(ends[-1]) if len(ends) else self._open + len(chunk)
        self._last = chunk[-1]
        return ends, np.cumsum(is_row)


def line_ranges(path: Path, shown_as: str, remaining: Remaining) -> Iterator[Segment]:
    """The lines of a file, which errors call `shown_as`, cut where a block is full."""
    scan, position = _LineScan(), 0
    start, first_line, lines, rows = 0, 1, 0, 0
    with path.open("rb") as file:
        while chunk := file.read(_SCAN_BYTES):
            ends, counted = scan.lines(chunk)
            lines_taken, rows_taken = 0, 0
            while len(counted) and counted[-1] - rows_taken >= (needed := remaining() - rows):
                place = int(np.searchsorted(counted, rows_taken + needed))
                end = position + int(ends[place])
                size = end - start
                yield LineRange(path, shown_as, start, size, first_line, rows + needed, size=size)
                first_line += lines + place + 1 - lines_taken
                lines_taken, rows_taken = place + 1, rows_taken + needed
                start, lines, rows = end, 0, 0
            lines += len(ends) - lines_taken
            rows += int(counted[-1]) - rows_taken if len(counted) else 0
            position += len(chunk)
    if rows := rows + scan.within_a_line:
        size = position - start
        yield LineRange(path, shown_as, start, size, first_line, rows, size=size)


def spooled(
    shown_as: str, chunks: Iterator[bytes], remaining: Remaining, spool: Path, padded: bool = False
) -> Iterator[Segment]:
    """As `line_ranges`, of what is read once: each block's lines are copied to a file of their own in `spool`."""
    first_line, rest, before = 1, b"", 0
    while True:
        copied = copy_lines(rest, chunks, remaining(), spool)
        path, rest = copied.path, copied.rest
        if not copied.rows:
            path.unlink()
            return
        length = path.stat().st_size
        position = chunks.position if isinstance(chunks, FileChunks) else 0
        taken, before = position - before, position
        yield LineRange(path, shown_as, 0, length, first_line, copied.rows, temporary=True, padded=padded, size=taken)
        first_line += copied.lines


@dataclass(frozen=True, slots=True)
class Copied:
    """Lines in a file of their own, the rows among them, and what was read past them."""

    path: Path
    lines: int
    rows: int
    rest: bytes


def copy_lines(rest: bytes, chunks: Iterator[bytes], limit: int, spool: Path) -> Copied:
    """Copy lines to a new file, up to the one that is row number `limit`. Raises ToolkitError on a full disk."""
    try:
        return _copied_lines(rest, chunks, limit, spool)
    except OSError as fault:
        raise explained(fault, spool) from fault


def _copied_lines(rest: bytes, chunks: Iterator[bytes], limit: int, spool: Path) -> Copied:
    scan, lines, rows = _LineScan(), 0, 0
    with tempfile.NamedTemporaryFile(dir=spool, prefix="kolibri-sft-", suffix=".jsonl", delete=False) as copy:
        path = Path(copy.name)
        for chunk in itertools.chain([rest] if rest else [], chunks):
            ends, counted = scan.lines(chunk)
            if len(counted) and counted[-1] >= limit - rows:
                place = int(np.searchsorted(counted, limit - rows))
                copy.write(chunk[: ends[place]])
                return Copied(path, lines + place + 1, limit, chunk[ends[place] :])
            copy.write(chunk)
            lines += len(ends)
            rows += int(counted[-1]) if len(counted) else 0
    return Copied(path, lines + scan.within_a_line, rows + scan.within_a_line, b"")
