"""Stretches of input rows that any process can read on its own: byte ranges of JSONL, row ranges of tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from sft_toolkit.errors import RecordError, ToolkitError
from sft_toolkit.json_text import decode
from sft_toolkit.shards.records import from_row
from sft_toolkit.shards.schemas import SCHEMAS, kind_of
from sft_toolkit.shards.writer import require_checksum

MAX_LINE_BYTES = 64 << 20
ARROW_FAULTS = (pa.ArrowException, OSError, UnicodeDecodeError)
"""What reading a damaged Arrow or Parquet file may raise."""
_TABLE_BATCH_ROWS = 256
_READ_BYTES = 1 << 18
_SHOWN_OF_A_BAD_LINE = 1000
_INCOMPLETE = "is the download complete?"


@dataclass(frozen=True, slots=True)
class Row:
    """One input row: where it stands, its decoded record or the error that reading it met, and its size in bytes.

    `padded`: it is a row of a foreign table, where null may be the padding of a column of structs.
    """

    origin: str
    record: Any
    error: RecordError | None = None
    size: int = 0
    padded: bool = False


class Segment(Protocol):
    @property
    def rows(self) -> int:
        """How many rows it holds; for JSONL, lines that are not empty."""

    @property
    def size(self) -> int:
        """Bytes of the input that it stands for, about; 0 where unknown."""

    def read(self) -> Iterator[Row]:
        """Yield the rows in order, one at a time."""


@dataclass(frozen=True, slots=True)
class LineRange:
    """Lines of a JSONL file. `shown_as` is the name that errors give; a `temporary` file goes once it is read.

    `padded`: the lines were rows of a table. `size`: bytes of the input that it stands for, 0 where unknown.
    """

    path: Path
    shown_as: str
    offset: int
    length: int
    first_line: int
    rows: int
    temporary: bool = False
    padded: bool = False
    size: int = 0

    def read(self) -> Iterator[Row]:
        """Blank lines are passed over; a line that is too long or no JSON becomes a row with an error."""
        with self.path.open("rb", buffering=_READ_BYTES) as file:
            file.seek(self.offset)
            end = self.offset + self.length
            number = self.first_line
            while file.tell() < end:
                line = file.readline(MAX_LINE_BYTES + 1)
                origin = f"{self.shown_as}:{number}"
                if len(line) > MAX_LINE_BYTES:
                    yield _too_long(origin, line, len(line) + _skip_line(file))
                elif not line.isspace():
                    row = _decode_line(origin, line, self.padded)
                    yield row if row.error is None else replace(row, error=self._with_hint(row.error, line))
                else:
                    number += _skip_blank_lines(file, end)
                number += 1

    def _with_hint(self, error: RecordError, line: bytes) -> RecordError:
        """A .json file amid others is often no data at all, but a configuration."""
        if not self.shown_as.lower().endswith(".json") or line.lstrip()[:1] == b"[":
            return error
        rest = Path(self.shown_as).parent / "*.jsonl"
        hint = f"a .json file is read as one record a line; where it is no data, name the others, as in '{rest}'"
        return RecordError(error.reason, error.detail, hint)


def _skip_blank_lines(file: Any, end: int) -> int:
    """Pass over the empty lines up to one with content, or to `end`; returns how many. One look takes a buffer full."""
    skipped = 0
    while ahead := file.peek()[: end - file.tell()]:
        blank = ahead[: len(ahead) - len(ahead.lstrip(b"\r\n"))]
        file.read(len(blank))
        skipped += blank.count(b"\n")
        if len(blank) < len(ahead):
            break
    return skipped


def _skip_line(file: Any) -> int:
    skipped = 0
    while rest := file.readline(MAX_LINE_BYTES):
        skipped += len(rest)
        if rest.endswith(b"\n"):
            break
    return skipped


def _too_long(origin: str, line: bytes, size: int) -> Row:
    if line.lstrip().startswith(b"["):
        hint = "the file seems to be one JSON array: write one record a line, for instance with jq -c '.[]'"
    else:
        hint = "no conversation is that long: split it or take it out"
    detail = f"the line has {size / 2**20:.0f} MiB, more than {MAX_LINE_BYTES >> 20}"
    return Row(origin, _shown(line), RecordError("line_too_long", detail, hint))


def _decode_line(origin: str, line: bytes, padded: bool) -> Row:
    try:
        return Row(origin, decode(line.removeprefix(b"\xef\xbb\xbf")), size=len(line), padded=padded)
    except ValueError as fault:
        return Row(origin, _shown(line), _line_fault(line, fault))


def _line_fault(line: bytes, fault: Exception) -> RecordError:
    try:
        line.decode()
    except UnicodeDecodeError as bad:
        detail = f"byte {bad.start + 1} of the line is not UTF-8"
        return RecordError("invalid_utf8", detail, "convert the file, for instance with iconv -t UTF-8")
    if (beyond := _beyond_json(line)) is not None:
        return beyond
    if b"\r" in line.rstrip(b"\r\n"):
        hint = "convert them, for instance with tr '\\r' '\\n'"
        return RecordError("not_json", "the lines end in carriage returns alone, as on an old Mac", hint)
    if not line.endswith(b"\n"):
        return RecordError(
            "torn_line", f"the last line is cut off: {fault}", "was the writer stopped? complete or remove that line"
        )
    if line.lstrip()[:1] == b"[":
        hint = "the file seems to be one JSON array: write one record a line, for instance with jq -c '.[]'"
        return RecordError("not_json", f"the line is not a JSON object: {fault}", hint)
    return RecordError("not_json", f"the line is not JSON: {fault}", "one JSON object a line is expected")


def _beyond_json(line: bytes) -> RecordError | None:
    """What Python's own reader lets pass and writer puts out, though it is no JSON; None for any other fault."""
    constants: list[str] = []
    try:
        json.dumps(json.loads(line, parse_constant=constants.append), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        hint = "fix the text, for instance with \\ufffd in place of the half"
        return RecordError("not_json", "an escape in the line is half of a surrogate pair", hint)
    except (ValueError, RecursionError):
        return None
    if not constants:
        return None
    return RecordError("not_json", f"the line holds {constants[0]}, which is no JSON number", "write null in its place")


def _shown(line: bytes) -> str:
    return line[:_SHOWN_OF_A_BAD_LINE].decode(errors="replace")


@dataclass(frozen=True, slots=True)
class TableRange:
    """Rows of a Parquet file or of an Arrow file (IPC file or stream format).

    `checksum` is that of the whole file where it is known: the range that begins the file compares it, so that one
    process reads each file once for it.
    """

    path: Path
    first_row: int
    rows: int
    checksum: str | None = None
    size: int = 0

    def require_intact(self) -> None:
        """Raise ToolkitError where the file's bytes are not those that were written."""
        if self.checksum is not None and self.first_row == 0:
            require_checksum(self.path, self.checksum)

    def read(self) -> Iterator[Row]:
        self.require_intact()
        batches = parquet_batches(self) if self.path.suffix.lower() == ".parquet" else arrow_batches(self)
        number = self.first_row
        for batch in batches:
            ours = kind_of(batch.schema) == "records"
            size = batch.nbytes // max(batch.num_rows, 1)
            for row in _plain_rows(self.path, batch):
                yield _table_row(f"{self.path}:row {number}", row, ours, size)
                number += 1


def _plain_rows(path: Path, batch: pa.RecordBatch) -> list[dict[str, Any]]:
    try:
        names = batch.schema.names
        repeated = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if repeated is not None:
            raise ToolkitError(f"{path}: two columns are called {repeated}", "rename one of them")
        return batch.to_pylist()
    except (ValueError, OverflowError) as fault:  # text that is not UTF-8, a date that Python has no value for
        raise ToolkitError(f"{path}: holds a value that cannot be read: {fault}", "fix or drop its column") from fault


def _table_row(origin: str, row: dict[str, Any], ours: bool, size: int) -> Row:
    if not ours:
        return Row(origin, row, size=size, padded=True)
    try:
        return Row(origin, from_row(row), size=size)
    except RecordError as error:
        return Row(origin, str(row)[:_SHOWN_OF_A_BAD_LINE], error)


def parquet_batches(wanted: TableRange) -> Iterator[pa.RecordBatch]:
    """The batches that hold the wanted rows, reading only the row groups that hold them."""
    with open_parquet(wanted.path) as file:
        start, end, before = wanted.first_row, wanted.first_row + wanted.rows, 0
        groups, skipped = [], None
        for group in range(file.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            if before + count > start and before < end:
                skipped = start - before if skipped is None else skipped
                groups.append(group)
            before += count
        try:
            yield from _cut(file.iter_batches(_TABLE_BATCH_ROWS, row_groups=groups), skipped or 0, wanted.rows)
        except ARROW_FAULTS as fault:
            raise ToolkitError(f"{wanted.path}: damaged: {fault}", _INCOMPLETE) from fault


def arrow_batches(wanted: TableRange, kind: str | None = None) -> Iterator[pa.RecordBatch]:
    """The batches that hold the wanted rows, of shards of `kind` where it is known; only their bytes are read."""
    with pa.memory_map(str(wanted.path)) as source:
        batches = (part for batch in unchecked_arrow(wanted.path, source) for part in _sliced(batch))
        for batch in _cut(batches, wanted.first_row, wanted.rows):
            yield validated(wanted.path, batch, kind)


def open_parquet(path: Path) -> pq.ParquetFile:
    """Raises ToolkitError where the file is none or its footer is damaged."""
    try:
        return pq.ParquetFile(path, memory_map=True)
    except (FileNotFoundError, PermissionError):
        raise
    except ARROW_FAULTS as fault:
        raise ToolkitError(f"{path}: not a Parquet file: {fault}", _INCOMPLETE) from fault


def open_arrow(path: Path, source: pa.NativeFile, kind: str | None = None) -> Iterator[pa.RecordBatch]:
    """Batches of an Arrow IPC file or stream, of a shard of `kind` where it is known.

    Raises ToolkitError where it is neither, ends early or is damaged.
    """
    for batch in unchecked_arrow(path, source):
        yield validated(path, batch, kind)


def validated(path: Path, batch: pa.RecordBatch, kind: str | None = None) -> pa.RecordBatch:
    """The batch, whose values can be read: an offset out of bounds would end the process.

    A shard of ours has the columns of its kind. Raises ToolkitError.
    """
    found = kind_of(batch.schema)
    wanted = SCHEMAS.get(kind or found or "")
    try:
        batch.validate(full=True)
        if kind not in (None, found):
            raise pa.ArrowInvalid(f"its schema is not that of {kind} shards")
        if wanted is not None and batch.select(wanted.names).schema != wanted:
            raise pa.ArrowInvalid(f"its columns are not those of {found} shards")
    except (pa.ArrowException, KeyError) as fault:
        raise ToolkitError(f"{path}: damaged: {fault}", "copy it again, or write it again") from fault
    return batch


def unchecked_arrow(path: Path, source: pa.NativeFile) -> Iterator[pa.RecordBatch]:
    """As `open_arrow`, for counting rows and passing batches over: no value may be read before `validated`."""
    try:
        try:
            reader = pa.ipc.open_file(source)
        except pa.ArrowException:
            source.seek(0)
            yield from pa.ipc.open_stream(source)
            return
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
    except ARROW_FAULTS as fault:
        raise ToolkitError(f"{path}: not a whole Arrow file: {fault}", "is the copy complete?") from fault


def _sliced(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, _TABLE_BATCH_ROWS):
        yield batch.slice(start, _TABLE_BATCH_ROWS)


def _cut(batches: Iterator[pa.RecordBatch], skip: int, rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if skip >= batch.num_rows:
            skip -= batch.num_rows
            continue
        wanted = batch.slice(skip, rows)
        skip = 0
        rows -= wanted.num_rows
        yield wanted
        if rows == 0:
            return
