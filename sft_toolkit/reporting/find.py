"""One record, token row or packed sequence out of many, by id or by row, without reading the others whole."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError, ToolkitError
from sft_toolkit.formats import RecordReader
from sft_toolkit.near_ids import NearIds
from sft_toolkit.shards.segments import Row, TableRange, arrow_batches, open_arrow
from sft_toolkit.shards.shard_folder import ShardFolder, is_shard_folder
from sft_toolkit.shards.sources import Source

_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class Document:
    """input_ids: int32[tokens]; loss_mask: bool[tokens]."""

    id: str
    input_ids: NDArray[np.int32]
    loss_mask: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Sequence:
    """A row of a token shard (one document) or of a packed one.

    `wanted` is the number of the document that was asked for by id, None where the row was asked for. `tokenizer` is
    the hash of the tokenizer that made it, None where no manifest says.
    """

    origin: str
    labels: dict[str, str]
    documents: list[Document]
    wanted: int | None
    tokenizer: str | None


def find(what: str, identity: str | None, row: int, reader: RecordReader) -> Conversation | Sequence:
    """The record or sequence of that id; without an id, of that row, counted from 0. `reader` reads records.

    Raises ToolkitError where there is none, RecordError where the record is faulty.
    """
    shards = _shards(Path(what))
    if shards is None:
        return _find_in_source(what, identity, row, reader)
    place = shards.place_of(row) if identity is None else shards.place_with(identity)
    if shards.kind == "records":
        return _conversations(next(TableRange(place.path, place.row, 1).read()), reader)[0]
    return _read_sequence(shards, place, identity)


def _shards(path: Path) -> _Shards | None:
    """The shards of a folder of ours, or a single one of them; None where the path is neither."""
    if is_shard_folder(path):
        folder = ShardFolder(path)
        return _Shards(str(path), folder, folder.paths)
    if path.suffix == ".arrow" and is_shard_folder(path.parent):
        folder = ShardFolder(path.parent)
        wanted = [shard for shard in folder.paths if shard.name == path.name]
        return _Shards(str(path), folder, wanted) if wanted else None
    return None


@dataclass(frozen=True, slots=True)
class _Place:
    path: Path
    row: int


@dataclass(frozen=True, slots=True)
class _Shards:
    shown_as: str
    folder: ShardFolder
    paths: list[Path]

    @property
    def kind(self) -> str:
        return self.folder.kind

    def place_of(self, row: int) -> _Place:
        rows = {shard["name"]: int(shard["rows"]) for shard in self.folder.manifest["shards"]}
        before = 0
        for path in self.paths:
            if row < before + rows[path.name]:
                return _Place(path, row - before)
            before += rows[path.name]
        raise _no_row(self.shown_as, row, before)

    def place_with(self, identity: str) -> _Place:
        """Only the pages of the files that hold ids are read."""
        for path in self.paths:
            for before, batch in self._batches(path):
                row = _row_with(batch, self._id_column, identity)
                if row is not None:
                    return _Place(path, before + row)
        near = NearIds(identity)
        for known in self._ids():
            near.add(known)
        raise _no_id(self.shown_as, identity, near)

    @property
    def _id_column(self) -> str:
        return "ids" if self.kind == "packed" else "id"

    def _batches(self, path: Path) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Each batch with the number of the shard's rows before it."""
        before = 0
        with pa.memory_map(str(path)) as source:
            for batch in open_arrow(path, source, self.kind):
                yield before, batch
                before += batch.num_rows

    def _ids(self) -> Iterator[str]:
        for path in self.paths:
            for _, batch in self._batches(path):
                for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
                    column = batch.column(self._id_column).slice(start, _ROWS_AT_ONCE)
                    yield from (column.flatten() if self.kind == "packed" else column).to_pylist()


def _row_with(batch: pa.RecordBatch, column: str, identity: str) -> int | None:
    ids = batch.column(column)
    if not pa.types.is_list(ids.type):
        found = pc.index(ids, pa.scalar(identity, ids.type)).as_py()
        return found if found >= 0 else None
    found = pc.index(ids.flatten(), pa.scalar(identity, ids.type.value_type)).as_py()
    if found < 0:
        return None
    offsets = ids.offsets.to_numpy()
    return int(np.searchsorted(offsets - offsets[0], found, side="right")) - 1


def _read_sequence(shards: _Shards, place: _Place, identity: str | None) -> Sequence:
    batch = next(arrow_batches(TableRange(place.path, place.row, 1), shards.kind))
    tokens, mask = _numbers(batch, "input_ids"), _numbers(batch, "loss_mask")
    if shards.kind == "packed":
        ids, bounds = batch.column("ids")[0].as_py(), _numbers(batch, "cu_seqlens").tolist()
        labels = {}
    else:
        ids, bounds = [batch.column("id")[0].as_py()], [0, len(tokens)]
        labels = {name: value for name in ("dataset", "effort") if (value := batch.column(name)[0].as_py())}
    documents = [
        Document(name, tokens[begin:end], mask[begin:end])
        for name, (begin, end) in zip(ids, pairwise(bounds), strict=True)
    ]
    wanted = None if identity is None else ids.index(identity)
    origin = f"{place.path}:row {place.row}"
    return Sequence(origin, labels, documents, wanted, shards.folder.manifest.get("tokenizer"))


def _numbers(batch: pa.RecordBatch, column: str) -> NDArray[Any]:
    values: NDArray[Any] = batch.column(column)[0].values.to_numpy(zero_copy_only=False)
    return values


def _find_in_source(what: str, identity: str | None, row: int, reader: RecordReader) -> Conversation:
    near = NearIds(identity) if identity is not None else None
    number = -1
    for number, found in enumerate(_rows(what)):
        if near is None:
            if number == row:
                return _conversations(found, reader)[0]
            continue
        for place, known in enumerate(_ids_of(found, reader)):
            if known == identity:
                return _conversations(found, reader)[place]
            near.add(known)
    if near is None:
        raise _no_row(what, row, number + 1)
    raise _no_id(what, near.wanted, near)


def _rows(what: str) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="kolibri-sft-") as spool:
        for block in Source([what]).blocks(_ROWS_AT_ONCE, Path(spool)):
            yield from block.read()
            block.discard()


def _ids_of(row: Row, reader: RecordReader) -> list[str]:
    """The ids as reading the record gives them, none for a faulty one."""
    given = row.record.get("id") if isinstance(row.record, dict) else None
    if isinstance(given, str) and given and not reader.mapping.entries:
        return [given]
    try:
        return [conversation.id for conversation in _conversations(row, reader)]
    except RecordError:
        return []


def _conversations(row: Row, reader: RecordReader) -> list[Conversation]:
    try:
        if row.error is not None:
            raise row.error
        conversations = reader.read(row.record, row.padded)
    except RecordError as error:
        raise RecordError(error.reason, f"{row.origin}: {error.detail}", error.hint) from error
    for conversation in conversations:
        conversation.origin = row.origin
    return conversations


def _no_row(what: str, row: int, rows: int) -> ToolkitError:
    return ToolkitError(f"{what}: no row {row}, it holds {rows:,}", "rows count from 0")


def _no_id(what: str, identity: str, near: NearIds) -> ToolkitError:
    hint = near.hint() + (f"; `row={identity}` shows the row of that number" if identity.isdecimal() else "")
    return ToolkitError(f"{what}: no id {identity!r} among {near.seen:,}", hint)
