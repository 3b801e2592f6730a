"""Inputs as a stream of blocks: the same rows in the same blocks however many files or processes there are."""

from __future__ import annotations

import glob
import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.json_text import decode, encode
from sft_toolkit.shards.atomic import explained
from sft_toolkit.shards.opening import (
    COMPRESSED,
    STDIN,
    FileChunks,
    content_of,
    is_stream,
    plain_name,
    stream_chunks,
)
from sft_toolkit.shards.pins import file_pin
from sft_toolkit.shards.remote import is_remote, remote_chunks, remote_names, remote_pin
from sft_toolkit.shards.segments import LineRange, Row, Segment, TableRange, open_parquet, unchecked_arrow
from sft_toolkit.shards.shard_folder import MANIFEST, ShardFolder, is_plain_name, is_shard_folder

_STDIN_SHOWN = "<stdin>"
HUB = "hf:"
_LINES = (".jsonl", ".ndjson", ".json")
_TABLES = (".parquet", ".arrow")
_KNOWN = ".jsonl, .ndjson and .json, also with .gz, .zst, .bz2 or .xz; .parquet, .arrow; or - for standard input"
_SCAN_BYTES = 8 << 20
_LINE_FEED, _CARRIAGE_RETURN = b"\n\r"

Remaining = Callable[[], int]


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
        self.inputs = [path for given in inputs for path in _resolve(given)]
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
            return _line_ranges(self._copies[name], _shown(name), remaining)
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


def _resolve(given: str) -> list[str]:
    given = plain_name(given)
    if is_remote(given):
        return remote_names(_remote_kind(given))
    if given.startswith(HUB):
        _require_hub_name(given)
    if given.startswith(HUB) or is_stream(given):
        return [given]
    _require_target(given)
    path = Path(given)
    if path.is_dir():
        return _resolve_folder(path)
    if path.exists():
        return [_known_kind(given)]
    found = sorted(glob.glob(given, recursive=True))
    if not found:
        raise UsageError(f"{given}: no such file or folder", "give files, globs, shard folders, hf:NAME[:SPLIT] or -")
    return [name for match in found for name in _resolve(match)]


def _resolve_folder(path: Path) -> list[str]:
    if is_shard_folder(path):
        return [str(shard) for shard in ShardFolder(path).paths]
    if files := _fact_of_datasets(path / "state.json", "_data_files"):
        return [str(path / _plain_name(path / "state.json", entry)) for entry in files]
    if splits := _fact_of_datasets(path / "dataset_dict.json", "splits"):
        raise UsageError(
            f"{path}: holds several splits", f"name the folder of one of them: {', '.join(map(str, splits))}"
        )
    found = _data_files(path)
    if not found:
        inner = next((folder for folder in sorted(path.iterdir()) if folder.is_dir() and _data_files(folder)), None)
        where = f"they are in {inner}: name that folder" if inner else "name the folder or the files that do"
        raise UsageError(f"{path}: holds no JSONL, Parquet or Arrow files", where)
    for name in found:
        _require_target(name)
    return found


def _data_files(folder: Path) -> list[str]:
    return sorted(str(file) for file in folder.iterdir() if _kind_suffix(file.name) in (*_LINES, *_TABLES))


def _require_target(name: str) -> None:
    """Raise UsageError for a link that leads nowhere, or to itself."""
    if os.path.islink(name) and not os.path.exists(name):
        raise UsageError(f"{name}: is a link to {os.readlink(name)}, where nothing is", "fix or remove the link")


def _fact_of_datasets(path: Path, key: str) -> list[Any]:
    """A list in a file that `datasets` writes beside its data; empty where the file is none of those."""
    try:
        held = decode(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return []
    found = held.get(key) if isinstance(held, dict) else None
    return found if isinstance(found, list) else []


def _plain_name(path: Path, entry: Any) -> str:
    """The name of a data file beside `path`. Raises ToolkitError for anything else, such as a place elsewhere."""
    name = entry.get("filename") if isinstance(entry, dict) else None
    if not is_plain_name(name):
        raise ToolkitError(f"{path}: {name if name is not None else entry!r} is not the name of a file beside it")
    return str(name)


def _known_kind(name: str) -> str:
    if _kind_suffix(name) not in (*_LINES, *_TABLES):
        raise UsageError(f"{name}: unknown kind of file", f"known: {_KNOWN}")
    return name


def _require_hub_name(given: str) -> None:
    name = given.removeprefix(HUB).partition(":")[0]
    if not name:
        raise UsageError(f"{given}: names no data set", "write hf:NAME or hf:NAME:SPLIT")


def _remote_kind(name: str) -> str:
    if _kind_suffix(name.partition("?")[0]) not in _LINES:
        raise UsageError(f"{name}: only JSONL is read from there", "copy files and shard folders of other kinds here")
    return name


def _kind_suffix(name: str) -> str:
    name = name.lower()
    for suffix in COMPRESSED:
        if name.endswith(suffix):
            stem_suffix = Path(name.removesuffix(suffix)).suffix
            return stem_suffix if stem_suffix in _LINES else ""
    return Path(name).suffix


def _segments(name: str, remaining: Remaining, spool: Path, checksum: str | None) -> Iterator[Segment]:
    path = Path(name)
    if is_stream(name):
        return _spooled(_shown(name), stream_chunks(name, _shown(name)), remaining, spool)
    if name.startswith(HUB) and not is_remote(name):
        return _spooled(name, _hub_lines(name), remaining, spool, padded=True)
    if is_remote(name):
        return _spooled(name, remote_chunks(name), remaining, spool)
    if path.suffix.lower() in _TABLES:
        return _table_ranges(path, remaining, checksum)
    if (kind := content_of(path)) is not None:
        return _spooled(name, FileChunks(path, kind), remaining, spool)
    return _line_ranges(path, name, remaining)


def _shown(stream: str) -> str:
    return _STDIN_SHOWN if stream == STDIN else stream


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


def _line_ranges(path: Path, shown_as: str, remaining: Remaining) -> Iterator[Segment]:
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


def _spooled(
    shown_as: str, chunks: Iterator[bytes], remaining: Remaining, spool: Path, padded: bool = False
) -> Iterator[Segment]:
    first_line, rest, before = 1, b"", 0
    while True:
        copied = _copy_lines(rest, chunks, remaining(), spool)
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
class _Copied:
    """Lines in a file of their own, the rows among them, and what was read past them."""

    path: Path
    lines: int
    rows: int
    rest: bytes


def _copy_lines(rest: bytes, chunks: Iterator[bytes], limit: int, spool: Path) -> _Copied:
    """Copy lines to a new file, up to the one that is row number `limit`. Raises ToolkitError on a full disk."""
    try:
        return _copied_lines(rest, chunks, limit, spool)
    except OSError as fault:
        raise explained(fault, spool) from fault


def _copied_lines(rest: bytes, chunks: Iterator[bytes], limit: int, spool: Path) -> _Copied:
    scan, lines, rows = _LineScan(), 0, 0
    with tempfile.NamedTemporaryFile(dir=spool, prefix="kolibri-sft-", suffix=".jsonl", delete=False) as copy:
        path = Path(copy.name)
        for chunk in itertools.chain([rest] if rest else [], chunks):
            ends, counted = scan.lines(chunk)
            if len(counted) and counted[-1] >= limit - rows:
                place = int(np.searchsorted(counted, limit - rows))
                copy.write(chunk[: ends[place]])
                return _Copied(path, lines + place + 1, limit, chunk[ends[place] :])
            copy.write(chunk)
            lines += len(ends)
            rows += int(counted[-1]) if len(counted) else 0
    return _Copied(path, lines + scan.within_a_line, rows + scan.within_a_line, b"")


def copy_streams(names: list[str], folder: Path, rows: int = sys.maxsize) -> dict[str, Path]:
    """Copy each stream, or its first `rows`, to a file in `folder`, for a Source to read more than once."""
    return {name: _copy_lines(b"", stream_chunks(name, _shown(name)), rows, folder).path for name in names}


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


def is_on_disk(name: str) -> bool:
    """True for an input that is a file here, which can be read from the middle."""
    return not is_stream(name) and not name.startswith(HUB) and not is_remote(name)
