"""The second pass of `mix`: read the blocks that something is taken from, and write it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sft_toolkit.conversation import Conversation
from sft_toolkit.json_text import encode
from sft_toolkit.shards.jsonl import encode_row
from sft_toolkit.shards.output import BlockReport, OutputFolder
from sft_toolkit.shards.records import to_row
from sft_toolkit.shards.sources import Block
from sft_toolkit.shards.writer import describe, shard_writer
from sft_toolkit.stage import Counters
from sft_toolkit.stages.mix.material import Material

Row = Conversation | dict[str, Any]


@dataclass(frozen=True, slots=True)
class Portion:
    """A block and how often each of its noted rows is taken: copies: uint32[n]; lengths: int32[n], tokens.

    `occupied`: by row, the numbers that its copies cannot have, for the input holds a record of that id.
    """

    block: Block
    copies: NDArray[np.uint32]
    lengths: NDArray[np.int32]
    occupied: Mapping[int, frozenset[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Piece:
    """The portions that one shard is made of, which is number `index`."""

    index: int
    portions: tuple[Portion, ...]

    def discard(self) -> None:
        for portion in self.portions:
            portion.block.discard()


def pieces(portions: Iterable[Portion], rows_per_piece: int) -> Iterator[Piece]:
    """Gather portions until a piece has at least `rows_per_piece` rows; those that nothing is taken from are left."""
    held: list[Portion] = []
    index = rows = 0
    for portion in portions:
        if not portion.copies.any():
            portion.block.discard()
            continue
        held.append(portion)
        rows += int(portion.copies.sum())
        if rows >= rows_per_piece:
            yield Piece(index, tuple(held))
            index, held, rows = index + 1, [], 0
    if held:
        yield Piece(index, tuple(held))


@dataclass(frozen=True, slots=True)
class Taken:
    """One row of the output, what stands for it in a list, and how many tokens it has."""

    row: Row
    origin: str
    length: int

    @property
    def id(self) -> str:
        return self.row.id if isinstance(self.row, Conversation) else self.row["id"]

    def named(self, name: str) -> Taken:
        """The same under another id."""
        row = replace(self.row, id=name) if isinstance(self.row, Conversation) else {**self.row, "id": name}
        return Taken(row, self.origin, self.length)

    @property
    def listed(self) -> bytes:
        dataset = self.row.dataset if isinstance(self.row, Conversation) else self.row["dataset"]
        return encode({"id": self.id, "dataset": dataset, "length": self.length, "origin": self.origin}) + b"\n"


def taken_rows(material: Material, piece: Piece) -> Iterator[Taken]:
    """The rows of a piece in input order. The second copy of a record is called ID#2, the third ID#3, and so on,
    but for ids that the input holds already."""
    for portion in piece.portions:
        wanted = portion.copies > 0
        rows = np.flatnonzero(wanted).tolist()
        counts = zip(rows, portion.copies[wanted].tolist(), portion.lengths[wanted].tolist(), strict=True)
        for (row, origin), (place, copies, length) in zip(material.take(portion.block, wanted), counts, strict=True):
            first = Taken(row, origin, length)
            yield first
            occupied = portion.occupied.get(place, frozenset())
            free = (number for number in count(2) if number not in occupied)
            for number in islice(free, copies - 1):
                yield first.named(f"{first.id}#{number}")
        portion.block.discard()


@dataclass(frozen=True, slots=True)
class PieceWriter:
    """Writes one shard per piece. Picklable."""

    material: Material
    folder: OutputFolder

    def __call__(self, piece: Piece) -> BlockReport:
        path = self.folder.shard_path(piece.index)
        with shard_writer(path, self.material.schema, self.folder.unfinished) as writer:
            for taken in taken_rows(self.material, piece):
                writer.write(to_row(taken.row) if isinstance(taken.row, Conversation) else taken.row)
        report = BlockReport(piece.index, describe(path, writer), Counters(records_out=writer.rows))
        self.folder.report(report, [])
        return report


@dataclass(frozen=True, slots=True)
class Lines:
    """A piece as JSONL."""

    data: bytes
    ids: list[str]


@dataclass(frozen=True, slots=True)
class PieceLines:
    """Makes the lines of a piece: its rows, or, where they are `listed`, what stands for them. Picklable."""

    material: Material
    listed: bool

    def __call__(self, piece: Piece) -> Lines:
        lines, ids = [], []
        for taken in taken_rows(self.material, piece):
            lines.append(taken.listed if self.listed else encode_row(taken.row))
            ids.append(taken.id)
        return Lines(b"".join(lines), ids)
