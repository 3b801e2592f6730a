"""One shard: an uncompressed Arrow IPC file, written in bounded record batches and renamed into place when whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sft_toolkit.errors import ToolkitError
from sft_toolkit.shards.atomic import atomic_path
from sft_toolkit.shards.schemas import record_batch

ROWS_PER_BATCH = 1024
BYTES_PER_BATCH = 8 << 20
_TOKEN_COLUMNS = ("length", "tokens")


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """What the manifest says of a shard; `blake2b` is of the whole file, tokens are 0 where rows hold none."""

    name: str
    rows: int
    tokens: int
    bytes: int
    blake2b: str
    loss_tokens: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class ShardWriter:
    """Collects rows and flushes a record batch when it is full by rows or by bytes."""

    def __init__(self, sink: pa.ipc.RecordBatchFileWriter, schema: pa.Schema) -> None:
        self._sink = sink
        self._schema = schema
        self._token_column = next((name for name in _TOKEN_COLUMNS if name in schema.names), None)
        self._pending: list[dict[str, Any]] = []
        self._pending_bytes = 0
        self.rows = 0
        self.tokens = 0
        self.loss_tokens = 0

    def write(self, row: dict[str, Any]) -> None:
        """Add a row: one value per column of the schema."""
        self._pending.append(row)
        self._pending_bytes += sum(_size(value) for value in row.values())
        self.rows += 1
        if self._token_column is not None:
            self.tokens += int(row[self._token_column])
            self.loss_tokens += int(row["loss_tokens"])
        if len(self._pending) >= ROWS_PER_BATCH or self._pending_bytes >= BYTES_PER_BATCH:
            self.flush()

    def flush(self) -> None:
        if self._pending:
            self._sink.write_batch(record_batch(self._schema, self._pending))
            self._pending, self._pending_bytes = [], 0


@contextmanager
def shard_writer(path: Path, schema: pa.Schema, within: Path | None = None) -> Iterator[ShardWriter]:
    """Open a shard for writing; it appears under `path` only when the block ends without an error.

    Until then it lies in the folder `within`, on the same file system, else beside `path`.
    """
    with (
        atomic_path(path, within) as temporary,
        pa.OSFile(str(temporary), "wb") as file,
        pa.ipc.new_file(file, schema) as sink,
    ):
        writer = ShardWriter(sink, schema)
        yield writer
        writer.flush()


def describe(path: Path, writer: ShardWriter) -> ShardInfo:
    """The manifest's entry for a shard just written."""
    size = path.stat().st_size
    return ShardInfo(path.name, writer.rows, writer.tokens, size, checksum(path), writer.loss_tokens)


def checksum(path: Path) -> str:
    """blake2b of a file's bytes, as hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def require_checksum(path: Path, written: str) -> None:
    """Raise ToolkitError where the bytes of a file are not those that were `written`."""
    if checksum(path) != written:
        raise ToolkitError(
            f"{path}: damaged: its bytes do not match the checksum in the manifest",
            "copy it again, or write the folder again",
        )


def _size(value: Any) -> int:
    if value is None or isinstance(value, int):
        return 8
    return int(value.nbytes) if hasattr(value, "nbytes") else len(value)
