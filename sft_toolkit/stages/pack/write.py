"""The second pass of `pack`: gather each sequence's documents from the token shards and write packed shards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sft_toolkit.packers import Packing
from sft_toolkit.packers.attention_cost import attention_cost
from sft_toolkit.shards.documents import DocumentReader
from sft_toolkit.shards.output import BlockReport, OutputFolder
from sft_toolkit.shards.schemas import PACKED
from sft_toolkit.shards.writer import describe, shard_writer
from sft_toolkit.stage import Counters

IGNORED = -100
_TOKENS_PER_BATCH = 1 << 21
_FOR_OTHER_TRAINERS = tuple(pa.field(name, pa.list_(pa.int32())) for name in ("labels", "position_ids", "seq_lengths"))
"""Columns of `--labels`. TRL's collator makes the boundaries of documents from `seq_lengths` alone."""


@dataclass(frozen=True, slots=True)
class SequenceBlock:
    """The sequences of one packed shard. Sequence s is documents[offsets[s] : offsets[s + 1]]."""

    index: int
    documents: NDArray[np.void]
    offsets: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BlockWriter:
    """Writes one shard per block, a record batch at a time. Picklable."""

    folder: OutputFolder
    reader: DocumentReader
    labels: bool

    def __call__(self, block: SequenceBlock) -> BlockReport:
        path = self.folder.shard_path(block.index)
        with shard_writer(path, packed_schema(self.labels), self.folder.unfinished) as writer:
            pending = 0
            for documents in np.split(block.documents, block.offsets[1:-1]):
                row = packed_row(self.reader, documents, self.labels)
                writer.write(row)
                pending += row["tokens"]
                if pending >= _TOKENS_PER_BATCH:
                    writer.flush()
                    pending = 0
        report = BlockReport(block.index, describe(path, writer), Counters(records_out=len(block.documents)))
        self.folder.report(report, [])
        return report


def blocks_of(documents: NDArray[np.void], packing: Packing, sequences_per_shard: int) -> Iterator[SequenceBlock]:
    """Cut a packing into numbered blocks. `packing` holds indices of `documents`: DOCUMENT[n]."""
    for index, first in enumerate(range(0, packing.sequences, sequences_per_shard)):
        offsets = packing.offsets[first : first + sequences_per_shard + 1]
        members = packing.documents[offsets[0] : offsets[-1]]
        yield SequenceBlock(index, documents[members], offsets - offsets[0])


def packed_schema(labels: bool) -> pa.Schema:
    """Schema of packed shards, with what other trainers expect where `labels` is set."""
    return pa.schema([*PACKED, *_FOR_OTHER_TRAINERS], metadata=PACKED.metadata) if labels else PACKED


def packed_row(reader: DocumentReader, documents: NDArray[np.void], labels: bool) -> dict[str, Any]:
    """One sequence: documents' tokens end to end, no padding. documents: DOCUMENT[m]."""
    bounds = np.zeros(len(documents) + 1, np.int32)
    np.cumsum(documents["length"], out=bounds[1:])
    input_ids = np.empty(bounds[-1], np.int32)
    loss_mask = np.empty(bounds[-1], np.bool_)
    for document, begin, end in zip(documents, bounds[:-1], bounds[1:], strict=True):
        reader.tokens(document, input_ids[begin:end])
        reader.loss_mask(document, loss_mask[begin:end])
    row = {
        "input_ids": input_ids,
        "loss_mask": loss_mask,
        "cu_seqlens": bounds,
        "ids": [reader.name(document) for document in documents],
        "tokens": int(bounds[-1]),
        "documents": len(documents),
        "loss_tokens": int(np.count_nonzero(loss_mask)),
        "cost": attention_cost(bounds),
    }
    if labels:
        row["labels"] = np.where(loss_mask, input_ids, np.int32(IGNORED))
        lengths = np.diff(bounds)
        row["position_ids"] = np.arange(bounds[-1], dtype=np.int32) - np.repeat(bounds[:-1], lengths)
        row["seq_lengths"] = lengths
    return row
