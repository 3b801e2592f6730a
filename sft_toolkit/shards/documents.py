"""Documents in token shards: where each one lies, without reading its tokens, and its tokens, one document at a time.

Token shards are uncompressed Arrow, so a document's tokens are one stretch of bytes in the file. Scanning a shard maps
it and notes the stretches; reading asks the file for them. Memory is that of the notes: 48 bytes a document.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sft_toolkit.errors import ToolkitError
from sft_toolkit.shards.segments import open_arrow

_OPEN_FILES = 256

# file: index into the list of shards; tokens_at, name_at: byte offsets, mask_at: a bit offset in that file;
# length: tokens, the first ones where fewer are kept; loss_tokens: those of them that carry loss; dataset: a code;
# key: what shuffling sorts by
DOCUMENT = np.dtype(
    [
        ("file", np.int32),
        ("dataset", np.int32),
        ("tokens_at", np.int64),
        ("mask_at", np.int64),
        ("name_at", np.int64),
        ("name_bytes", np.int32),
        ("length", np.int32),
        ("loss_tokens", np.int32),
        ("key", np.uint64),
    ]
)


@dataclass(frozen=True, slots=True)
class ScannedBatch:
    """A record batch of a token shard: its notes, and what a scan may want to look at before the file is unmapped.

    documents: DOCUMENT[rows], key not set; datasets: names of its codes; ids: string[rows]
    """

    documents: NDArray[np.void]
    datasets: list[str]
    ids: pa.StringArray
    loss_mask: Callable[[int], NDArray[np.bool_]]


def scan(path: Path, file: int) -> Iterator[ScannedBatch]:
    """Yield the batches of a token shard. Raises ToolkitError where it is damaged or compressed."""
    with pa.memory_map(str(path)) as source:
        base = source.read_buffer(source.size()).address
        for batch in open_arrow(path, source, "tokens"):
            yield _scan_batch(path, file, batch, _Located(path, base, source.size()))


@dataclass(frozen=True, slots=True)
class _Located:
    """Turns addresses in a mapped file into places in that file."""

    path: Path
    base: int
    size: int

    def offset(self, buffer: pa.Buffer | None) -> int:
        if buffer is None or not buffer.size:
            return 0
        place = buffer.address - self.base
        if not 0 <= place <= self.size:
            raise ToolkitError(f"{self.path}: compressed", "token shards are uncompressed Arrow, as render writes them")
        return int(place)


def _scan_batch(path: Path, file: int, batch: pa.RecordBatch, located: _Located) -> ScannedBatch:
    tokens, mask, ids = batch.column("input_ids"), batch.column("loss_mask"), batch.column("id")
    token_bounds, mask_bounds = (_bounds(column) for column in (tokens, mask))
    lengths = np.diff(token_bounds)
    _require_equal(path, lengths, np.diff(mask_bounds), ids, "loss_mask")
    _require_equal(path, lengths, batch.column("length").to_numpy(), ids, "length")
    datasets = batch.column("dataset").fill_null("").dictionary_encode()
    documents = np.zeros(batch.num_rows, DOCUMENT)
    if batch.num_rows:
        name_bounds = np.frombuffer(ids.buffers()[1], np.int32, batch.num_rows + 1, 4 * ids.offset)
        documents["tokens_at"] = located.offset(tokens.values.buffers()[1]) + 4 * token_bounds[:-1]
        documents["mask_at"] = 8 * located.offset(mask.values.buffers()[1]) + mask_bounds[:-1]
        documents["name_at"] = located.offset(ids.buffers()[2]) + name_bounds[:-1]
        documents["name_bytes"] = np.diff(name_bounds)
    documents["file"] = file
    documents["dataset"] = datasets.indices.to_numpy()
    documents["length"] = lengths
    documents["loss_tokens"] = batch.column("loss_tokens").to_numpy()

    def loss_mask(row: int) -> NDArray[np.bool_]:
        part = mask.values.slice(int(mask_bounds[row]), int(lengths[row]))
        return np.asarray(part.to_numpy(zero_copy_only=False), np.bool_)

    return ScannedBatch(documents, datasets.dictionary.to_pylist(), ids, loss_mask)


def _bounds(column: pa.ListArray) -> NDArray[np.int64]:
    """First element of each row's list among the column's values, and the end of the last: int64[rows + 1]."""
    if column.values.null_count or column.null_count:
        raise ToolkitError("token shards hold no nulls", "write them again with kolibri-sft render")
    return column.offsets.to_numpy().astype(np.int64) + column.values.offset


def _require_equal(
    path: Path, lengths: NDArray[np.int64], others: NDArray[np.integer], ids: pa.StringArray, column: str
) -> None:
    wrong = np.flatnonzero(lengths != others)
    if wrong.size:
        row = int(wrong[0])
        raise ToolkitError(
            f"{path}: record {ids[row].as_py()!r} has {lengths[row]} tokens, but {column} says {others[row]}",
            "write the shard again with kolibri-sft render",
        )


class DocumentReader:
    """Reads documents from where a scan of `paths` found them. Picklable: files are opened where they are read."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        self._paths = paths
        self._open = lru_cache(_OPEN_FILES)(_OpenFile)

    def __reduce__(self) -> tuple[type[DocumentReader], tuple[tuple[Path, ...]]]:
        return type(self), (self._paths,)

    def tokens(self, document: np.void, out: NDArray[np.int32]) -> None:
        """Fill `out`: int32[length] with a document's tokens."""
        self._fill(document, out.data.cast("B"), int(document["tokens_at"]))

    def loss_mask(self, document: np.void, out: NDArray[np.bool_]) -> None:
        """Fill `out`: bool[length] with a document's loss mask."""
        skipped = int(document["mask_at"]) % 8
        packed = np.empty((skipped + len(out) + 7) // 8, np.uint8)
        self._fill(document, packed.data, int(document["mask_at"]) // 8)
        out[:] = np.unpackbits(packed, count=skipped + len(out), bitorder="little")[skipped:]

    def name(self, document: np.void) -> str:
        """A document's id."""
        name = bytearray(int(document["name_bytes"]))
        self._fill(document, memoryview(name), int(document["name_at"]))
        return name.decode()

    def _fill(self, document: np.void, out: memoryview, offset: int) -> None:
        path = self._paths[int(document["file"])]
        descriptor = self._open(path).descriptor
        while out:
            count = os.preadv(descriptor, [out], offset)
            if not count:
                raise ToolkitError(f"{path}: ends at byte {offset}", "did it change while it was being read?")
            out, offset = out[count:], offset + count


class _OpenFile:
    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDONLY)

    def __del__(self) -> None:
        os.close(self.descriptor)
