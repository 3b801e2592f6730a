"""`index.parquet` beside packed shards: one row a sequence, all that a plan needs to know, and no tokens.

Columns: shard (its number among the folder's shards) and row in it, int32; tokens, documents, loss_tokens int32; cost
int64, tokens squared; datasets list<string>, and as long each, list<int32>: dataset_tokens, dataset_documents and
dataset_loss_tokens, what of the sequence is theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sft_toolkit.errors import ToolkitError
from sft_toolkit.packers.balance import DataSetMix
from sft_toolkit.shards.atomic import atomic_path
from sft_toolkit.shards.segments import ARROW_FAULTS, open_arrow

INDEX = "index.parquet"
_COUNTS = ("tokens", "documents", "loss_tokens", "cost")
_OF_DATA_SETS = ("dataset_tokens", "dataset_documents", "dataset_loss_tokens")
_COLUMNS = ("shard", "row", *_COUNTS, "datasets", *_OF_DATA_SETS)


@dataclass(frozen=True, slots=True)
class DataSetShares:
    """What of each sequence is of which data set; `documents` and `loss_tokens` have an entry for each of `mix`."""

    mix: DataSetMix
    documents: NDArray[np.integer]
    loss_tokens: NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class PackedIndex:
    """The index of a packed folder, in the order of its shards: arrays of one entry a sequence."""

    shard: NDArray[np.int32]
    row: NDArray[np.int32]
    tokens: NDArray[np.int32]
    documents: NDArray[np.int32]
    loss_tokens: NDArray[np.int32]
    cost: NDArray[np.int64]
    shares: DataSetShares
    datasets: list[str]

    @property
    def mix(self) -> DataSetMix:
        return self.shares.mix


def write_index(path: Path, shards: list[Path], shares: DataSetShares, datasets: list[str]) -> None:
    """Write the index of finished packed shards. `shares` has an entry for each of their sequences, in order.

    Raises ToolkitError where the documents that were packed have more or less loss than their token shards say.
    """
    mix = shares.mix
    parts = [_counts(number, shard) for number, shard in enumerate(shards)]
    table = pa.concat_tables(parts)
    if int(shares.loss_tokens.sum()) != pc.sum(table["loss_tokens"]).as_py():
        raise ToolkitError(
            "the loss_tokens of the token shards are not those of their loss masks",
            "write the token shards again with kolibri-sft render",
        )
    offsets = pa.array(mix.offsets, pa.int32())
    names = pa.DictionaryArray.from_arrays(pa.array(mix.datasets, pa.int32()), pa.array(datasets, pa.string()))
    table = table.append_column("datasets", pa.ListArray.from_arrays(offsets, names))
    for name, values in zip(_OF_DATA_SETS, (mix.tokens, shares.documents, shares.loss_tokens), strict=True):
        table = table.append_column(name, pa.ListArray.from_arrays(offsets, pa.array(values, pa.int32())))
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary)


def read_index(folder: Path) -> PackedIndex:
    """Read the index of a finished packed folder. Raises ToolkitError where it is missing or damaged."""
    path = folder / INDEX
    try:
        table = pq.read_table(path).combine_chunks()
    except ARROW_FAULTS as fault:
        raise ToolkitError(f"{path}: {fault}", "pack the folder again") from fault
    if lacking := set(_COLUMNS) - set(table.column_names):
        raise ToolkitError(f"{path}: it has no column {min(lacking)}", "pack the folder again")
    scalars = {name: table[name].to_numpy() for name in ("shard", "row", *_COUNTS)}
    lists = table["datasets"].chunk(0)
    names = lists.flatten().dictionary_encode()
    offsets = lists.offsets.to_numpy().astype(np.int64)
    tokens, documents, loss_tokens = (table[name].chunk(0).flatten().to_numpy() for name in _OF_DATA_SETS)
    mix = DataSetMix(offsets - offsets[0], names.indices.to_numpy(), tokens)
    return PackedIndex(
        **scalars, shares=DataSetShares(mix, documents, loss_tokens), datasets=names.dictionary.to_pylist()
    )


def _counts(number: int, shard: Path) -> pa.Table:
    with pa.memory_map(str(shard)) as source:
        counts = pa.Table.from_batches(batch.select(list(_COUNTS)) for batch in open_arrow(shard, source, "packed"))
        columns = {name: counts[name].to_numpy() for name in _COUNTS}
    rows = len(columns["tokens"])
    return pa.table({"shard": np.full(rows, number, np.int32), "row": np.arange(rows, dtype=np.int32), **columns})
