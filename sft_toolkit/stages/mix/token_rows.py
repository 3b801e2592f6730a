"""Token rows as material of a mixture: only what decides is read of a row that is not taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from sft_toolkit.draws import keys
from sft_toolkit.errors import UsageError
from sft_toolkit.shards.schemas import TOKENS
from sft_toolkit.shards.segments import TableRange, arrow_batches
from sft_toolkit.shards.sources import Block
from sft_toolkit.stage import Outcome
from sft_toolkit.stages.mix.choice import NOTE
from sft_toolkit.stages.mix.material import BlockNotes, FoundRow, Placing, caps_prompts
from sft_toolkit.stages.mix.mixture_file import Mixture

_COLUMNS = ("id", "dataset", "effort", "length", "loss_tokens")


@dataclass(frozen=True)
class TokenRows:
    """Rows of token shards. The prompt of a document is its tokens before the first that carries loss.

    Raises UsageError for a filter on a column that token shards do not have.
    """

    mixture: Mixture
    seed: int

    def __post_init__(self) -> None:
        unknown = sorted(set(self.mixture.columns) - set(_COLUMNS))
        if unknown:
            raise UsageError(
                f"{unknown[0]}: not a column of token shards", f"filter on {', '.join(_COLUMNS)}, or mix records"
            )

    @property
    def schema(self) -> pa.Schema:
        return TOKENS

    @property
    def identity(self) -> dict[str, str]:
        return {"column": "length"}

    def note(self, block: Block, quarantine: bool) -> BlockNotes:
        outcome = Outcome(quarantine)
        parts = [np.empty(0, NOTE)]
        ids: list[str] = []
        datasets: set[str] = set()
        for batch in _batches(block):
            parts.append(self._note(batch))
            ids.extend(batch.column("id").to_pylist())
            datasets.update(name or "" for name in batch.column("dataset").unique().to_pylist())
        outcome.counters.records_in = len(ids)
        return BlockNotes(np.concatenate(parts), ids, datasets, outcome)

    def _note(self, batch: pa.RecordBatch) -> NDArray[np.void]:
        notes = np.zeros(batch.num_rows, NOTE)
        ids = batch.column("id").to_pylist()
        datasets = batch.column("dataset").to_pylist()
        filtered = batch.select(self.mixture.columns).to_pylist() if self.mixture.columns else [{}] * len(ids)
        notes["ingredient"] = [self._place(dataset, row.get) for dataset, row in zip(datasets, filtered, strict=True)]
        notes["length"] = batch.column("length").to_numpy()
        notes["loss_tokens"] = batch.column("loss_tokens").to_numpy()
        notes["key"] = keys(self.seed, ids, "mix")
        if caps_prompts(self.mixture):
            notes["prompt"] = _token_prompts(batch)
        return notes

    def take(self, block: Block, wanted: NDArray[np.bool_]) -> Iterator[FoundRow]:
        start = 0
        for segment in _table_ranges(block):
            number = segment.first_row
            for batch in arrow_batches(segment):
                for row in np.flatnonzero(wanted[start : start + batch.num_rows]).tolist():
                    yield _token_row(batch, row), f"{segment.path}:row {number + row}"
                start, number = start + batch.num_rows, number + batch.num_rows

    @cached_property
    def _place(self) -> Placing:
        return Placing(self.mixture)


def _table_ranges(block: Block) -> Iterator[TableRange]:
    for segment in block.segments:
        assert isinstance(segment, TableRange)
        yield segment


def _batches(block: Block) -> Iterator[pa.RecordBatch]:
    for segment in _table_ranges(block):
        segment.require_intact()
        yield from arrow_batches(segment)


def _token_prompts(batch: pa.RecordBatch) -> list[int]:
    return [
        xxhash.xxh3_64_intdigest(_values(batch, "input_ids", row)[: _first_trained(batch, row)].tobytes())
        for row in range(batch.num_rows)
    ]


def _first_trained(batch: pa.RecordBatch, row: int) -> int:
    mask = _values(batch, "loss_mask", row)
    return int(mask.argmax()) if mask.any() else len(mask)


def _token_row(batch: pa.RecordBatch, row: int) -> dict[str, Any]:
    lists = {name: _values(batch, name, row) for name in ("input_ids", "loss_mask")}
    return {**{name: batch.column(name)[row].as_py() for name in _COLUMNS}, **lists}


def _values(batch: pa.RecordBatch, column: str, row: int) -> NDArray[Any]:
    """One row's list as an array."""
    return np.asarray(batch.column(column)[row].values.to_numpy(zero_copy_only=False))
