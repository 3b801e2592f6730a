"""Inputs as a stream of blocks: the same rows in the same blocks however many files or processes there are."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.json_text import encode
from sft_toolkit.shards.input_names import HUB, TABLES, is_on_disk, resolve
from sft_toolkit.shards.line_cutting import Remaining, copy_lines, line_ranges, spooled
from sft_toolkit.shards.opening import (
    STDIN,
    FileChunks,
    content_of,
    is_stream,
    stream_chunks,
)
from sft_toolkit.shards.pins import file_pin
from sft_toolkit.shards.remote import is_remote, remote_chunks, remote_pin
from sft_toolkit.shards.segments import LineRange, Row, Segment, TableRange, open_parquet, unchecked_arrow
from sft_toolkit.shards.shard_folder import MANIFEST, ShardFolder

_STDIN_SHOWN = "<stdin>"


@dataclass(frozen=True, slots=True)
class Block:
    """The unit of work and of resuming: consecutive input rows, `index` counting blocks from 0."""

    index: int
    segments: tuple[Segment, ...]

    @property
    def rows(self) -> int:
        return sum(segment.rows for segment in self.segments)

    @property
    def size(self) -> int:
        """Bytes of the inputs that it stands for, about; 0 where unknown."""
        return sum(segment.size for segment in self.segments)

    def read(self) -> Iterator[Row]:
        for segment in self.segments:
            yield from segment.read()

    def discard(self) -> None:
        """Remove the temporary copies of the block's rows, where there are any."""
        for segment in self.segments:
            if isinstance(segment, LineRange) and segment.temporary:
                segment.path.unlink(missing_ok=True)


class Source:
    """INPUT arguments, resolved: files, globs, folders, `hf:NAME[:SPLIT]` or `-`.

    `copies` hold what streams held (standard input, pipes), where a pass before this one has read them. With
    `checksums`, whoever reads the first row of a shard compares its bytes with its folder's manifest. Raises UsageError
    for an input that does not exist or is of no known kind, and for a stream that is given twice.
    """

    def __init__(self, inputs: list[str], copies: Mapping[str, Path] = {}, *, checksums: bool = False) -> None:
        self.inputs = [path for given in inputs for path in resolve(given)]
        self.streams = [name for name in self.inputs if is_stream(name)]
        self._copies = copies
        self._checksums = checksums
        for name in self.streams:
            if self.streams.count(name) > 1:
                raise UsageError(f"{name}: given twice, and can be read once only", "give it once")

    @property
    def repeatable(self) -> bool:
        """False where reading a second time would find nothing."""
        return not self.streams

    @property
    def size(self) -> int | None:
        """Bytes of all inputs as they lie on the disk; None where one is a stream or elsewhere."""
        files = [self._copies.get(name, Path(name)) for name in self.inputs]
        known = all(name in self._copies or os.path.isfile(name) for name in self.inputs)
        return sum(file.stat().st_size for file in files) if known else None

    def blocks(self, rows_per_block: int, spool: Path | None = None) -> Iterator[Block]:
        """Cut the rows of all inputs, in order, into blocks of `rows_per_block`; only the last may hold fewer.

        Rows that cannot be read from the middle (compressed, piped or remote) are copied to `spool`, block by block.
        """
        segments: list[Segment] = []
        index, held = 0, 0

        def remaining() -> int:
            return rows_per_block - held

        for name in self.inputs:
            for segment in self._segments(name, remaining, spool or Path(tempfile.gettempdir())):
                segments.append(segment)
                held += segment.rows
                if held == rows_per_block:
                    yield Block(index, tuple(segments))
                    segments, index, held = [], index + 1, 0
        if segments:
            yield Block(index, tuple(segments))

    def _segments(self, name: str, remaining: Remaining, spool: Path) -> Iterator[Segment]:
        if name in self._copies:
            return line_ranges(self._copies[name], _shown(name), remaining)
        return _segments(name, remaining, spool, self._written.get(name) if self._checksums else None)

    @cached_property
    def _written(self) -> dict[str, str]:
        """Checksums of the shards among the inputs, as their manifests state them."""
        parents = {Path(name).parent for name in self.inputs if Path(name).suffix == ".arrow"}
        folders = [ShardFolder(path) for path in parents if (path / MANIFEST).is_file()]
        return {str(path): written for folder in folders for path, written in folder.checksums()}

    def fingerprints(self, known: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
        """What identifies the content of each input; a file that `known` fingerprints are of is not read again."""
        return [
            file_pin(Path(name), known, self._written.get(name))
            if is_on_disk(name)
            else remote_pin(name)
            if is_remote(name)
            else {"name": name}
            for name in self.inputs
        ]


def _segments(name: str, remaining: Remaining, spool: Path, checksum: str | None) -> Iterator[Segment]:
    path = Path(name)
    if is_stream(name):
        return spooled(_shown(name), stream_chunks(name, _shown(name)), remaining, spool)
    if name.startswith(HUB) and not is_remote(name):
        return spooled(name, _hub_lines(name), remaining, spool, padded=True)
    if is_remote(name):
        return spooled(name, remote_chunks(name), remaining, spool)
    if path.suffix.lower() in TABLES:
        return _table_ranges(path, remaining, checksum)
    if (kind := content_of(path)) is not None:
        return spooled(name, FileChunks(path, kind), remaining, spool)
    return line_ranges(path, name, remaining)


def _shown(stream: str) -> str:
    return _STDIN_SHOWN if stream == STDIN else stream


def copy_streams(names: list[str], folder: Path, rows: int = sys.maxsize) -> dict[str, Path]:
    """Copy each stream, or its first `rows`, to a file in `folder`, for a Source to read more than once."""
    return {name: copy_lines(b"", stream_chunks(name, _shown(name)), rows, folder).path for name in names}


def _hub_lines(name: str) -> Iterator[bytes]:
    import datasets

    _, _, rest = name.partition(":")
    dataset, colon, split = rest.rpartition(":")
    dataset, split = (dataset, split) if colon else (rest, "train")
    try:
        rows = datasets.load_dataset(dataset, split=split, streaming=True)
    except Exception as fault:  # whatever the library and its loaders raise, a name that cannot be loaded is one line
        reason = (str(fault).splitlines() or [type(fault).__name__])[0]
        raise ToolkitError(f"{name}: cannot be opened: {reason}", "check name, split and network") from fault
    for row in rows:
        yield encode(row) + b"\n"


def _table_ranges(path: Path, remaining: Remaining, checksum: str | None) -> Iterator[Segment]:
    rows, first, size = table_rows(path), 0, path.stat().st_size
    while first < rows:
        count = min(remaining(), rows - first)
        yield TableRange(path, first, count, checksum, size * count // rows)
        first += count


def table_rows(path: Path) -> int:
    """Number of rows of a Parquet or Arrow file, from its metadata."""
    if path.suffix.lower() == ".parquet":
        with open_parquet(path) as file:
            return int(file.metadata.num_rows)
    with pa.memory_map(str(path)) as source:
        return sum(batch.num_rows for batch in unchecked_arrow(path, source))
