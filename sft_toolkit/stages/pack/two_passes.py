"""`pack`: token shards in, sequences of a fixed capacity out (SPEC section 6: Next-k-Fit, k = 256, 262,144 tokens).

Two passes over the files. The first notes where each document lies and how long it is; from lengths alone the
packing follows; the second gathers tokens, one sequence at a time. Memory holds the notes, never the tokens.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xxhash
from numpy.typing import NDArray

from sft_toolkit.choices import Overlong, PackingMethod
from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.json_text import encode
from sft_toolkit.packers import Packing, best_fit_decreasing, next_k_fit
from sft_toolkit.packers.attention_cost import PackingStatistics, attention_costs, packing_statistics
from sft_toolkit.packers.balance import DataSetMix
from sft_toolkit.running.folder_writer import FolderWork, write_folder
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.output_checks import check_folder_options
from sft_toolkit.shards.documents import DocumentReader
from sft_toolkit.shards.output import OutputFolder
from sft_toolkit.shards.packed_index import INDEX, DataSetShares, write_index
from sft_toolkit.shards.shard_folder import ShardFolder, rendering_of
from sft_toolkit.stage import Counters, StageOptions
from sft_toolkit.stages.pack.scan import Corpus, ScanOptions, scan_shards, shuffled
from sft_toolkit.stages.pack.write import BlockWriter, SequenceBlock, blocks_of

DEFAULT_CAPACITY = 262_144
_TOKENS_PER_SHARD = 1 << 28
_WORTH_A_POOL = 1_000_000


@dataclass(frozen=True)
class PackOptions(StageOptions):
    """What decides what comes out. `k` is the number of open bins, or, for bfd, of those carried between chunks."""

    capacity: int = DEFAULT_CAPACITY
    k: int = 256
    method: PackingMethod = "nkf"
    overlong: Overlong = "error"
    shuffle: bool = True
    labels: bool = False
    seed: int = 0

    name: ClassVar[str] = "pack"

    @property
    def scan(self) -> ScanOptions:
        return ScanOptions(self.capacity, self.overlong, self.seed if self.shuffle else None)

    def pack(self, lengths: NDArray[np.integer]) -> Packing:
        """Pack documents in this order. lengths: int[n], tokens."""
        packer = next_k_fit if self.method == "nkf" else best_fit_decreasing
        return packer(lengths, self.capacity, self.k)


@dataclass(frozen=True)
class _Planned:
    """What the first pass leads to. `packing` holds indices of the corpus' documents."""

    corpus: Corpus
    packing: Packing
    reader: DocumentReader

    def statistics(self, capacity: int) -> PackingStatistics:
        lengths = self.corpus.documents["length"]
        documents = np.diff(self.packing.offsets)
        costs = attention_costs(lengths, self.packing)
        return packing_statistics(self.packing.sums(lengths), documents, costs, capacity)

    def shares(self) -> DataSetShares:
        """What each sequence holds of each data set, by the codes of the corpus."""
        width = len(self.corpus.datasets)
        packed = self.corpus.documents[self.packing.documents]
        sequence = np.repeat(np.arange(self.packing.sequences), np.diff(self.packing.offsets))
        cells, place = np.unique(sequence * width + packed["dataset"], return_inverse=True)
        tokens, loss_tokens = (
            np.bincount(place, weights=packed[name]).astype(np.int64) for name in ("length", "loss_tokens")
        )
        offsets = np.searchsorted(cells, np.arange(self.packing.sequences + 1) * width)
        return DataSetShares(DataSetMix(offsets, cells % width, tokens), np.bincount(place), loss_tokens)


def run_pack(options: PackOptions, run: RunOptions) -> Summary:
    """Pack the token shard folders of `run` into its output folder.

    Raises UsageError and ToolkitError as `run_stage` does, and RecordError for an over-long document under
    `overlong="error"` where faults are not quarantined.
    """
    work = _Packing(options, run)
    return work.preview() if run.dry_run else write_folder(work)


class _Packing(FolderWork[SequenceBlock]):
    """One run: the first pass makes the plan, of which the second writes a shard at a time."""

    kind = "packed"

    def __init__(self, options: PackOptions, run: RunOptions) -> None:
        super().__init__(options, run)
        self._options = options
        self._begun = time.monotonic()
        self._folders = _token_folders(run)
        self._rendering = rendering_of(self._folders)
        self._planned: _Planned | None = None

    def unique_ids(self, shard: Path) -> list[str]:
        """None of sequences; the shuffle looks at those of documents."""
        return []

    @property
    def rows_per_shard(self) -> int:
        """Sequences: as many as the user said, but no more than about 1 GiB of them."""
        return max(1, min(self.run.rows_per_shard, _TOKENS_PER_SHARD // self._options.capacity))

    def inputs(self, known: Sequence[Mapping[str, Any]] = ()) -> list[Any]:
        return [_fingerprint(folder) for folder in self._folders]

    def tasks(self, folder: OutputFolder, spool: Path) -> Iterator[SequenceBlock]:
        planned = self._plan(folder)
        return blocks_of(planned.corpus.documents, planned.packing, self.rows_per_shard)

    def writer(self, folder: OutputFolder) -> BlockWriter:
        return BlockWriter(folder, self._plan().reader, self._options.labels)

    def finish(self, folder: OutputFolder, shards: list[Path]) -> dict[str, Any]:
        planned = self._plan()
        write_index(folder.path / INDEX, shards, planned.shares(), planned.corpus.datasets)
        return {"capacity": self._options.capacity, **self._rendering, "statistics": self.facts()}

    def facts(self) -> dict[str, Any]:
        return asdict(self._plan().statistics(self._options.capacity))

    def preview(self) -> Summary:
        facts = self.facts()
        seconds = time.monotonic() - self._begun
        return Summary(f"{self.stage.name} (dry run)", "nothing", self.counters, seconds, facts=facts)

    def _plan(self, folder: OutputFolder | None = None) -> _Planned:
        """The first pass, the first time; what it rejects is listed in `folder`, if there is one."""
        if self._planned is None:
            self._planned = _first_pass(self._folders, self._options, folder, self.run)
            self.counters.add(self._planned.corpus.counters)
        return self._planned


def _first_pass(
    inputs: list[ShardFolder], options: PackOptions, folder: OutputFolder | None, run: RunOptions
) -> _Planned:
    shards = [shard for source in inputs for shard in source.checksums()]
    few = sum(source.rows for source in inputs) < _WORTH_A_POOL
    corpus = scan_shards(shards, options.scan, folder, replace(run, workers=1, driver="local") if few else run)
    documents = corpus.documents
    if not len(documents):
        raise ToolkitError(f"{', '.join(run.inputs)}: no document is left to pack", _why_not(corpus.counters))
    reader = DocumentReader(tuple(path for path, _ in shards))
    order = shuffled(documents, reader.name) if options.shuffle else np.arange(len(documents))
    packing = options.pack(documents["length"][order])
    return _Planned(corpus, Packing(order[packing.documents], packing.offsets), reader)


def _why_not(counters: Counters) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in counters.rejected.items()) or "is the input empty?"


def _token_folders(run: RunOptions) -> list[ShardFolder]:
    """Raises UsageError unless folders go in and another folder comes out, ToolkitError for a folder that is unfit."""
    if not run.to_folder:
        raise UsageError("packed shards are a folder", "name it with `output`")
    for given in run.inputs:
        if not Path(given).is_dir():
            raise UsageError(f"{given}: not a folder", "pack reads folders of token shards, as render writes them")
    folders = [ShardFolder(given, "tokens") for given in run.inputs]
    check_folder_options(run)
    return folders


def _fingerprint(folder: ShardFolder) -> dict[str, Any]:
    checksums = encode([shard["blake2b"] for shard in folder.manifest["shards"]])
    return {"name": folder.path.name, "rows": folder.rows, "content": xxhash.xxh3_128_hexdigest(checksums)}
