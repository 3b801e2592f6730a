"""`pack`: token shards in, sequences of a fixed capacity out (SPEC section 6: Next-k-Fit, k = 256, 262,144 tokens).

Two passes over the files. The first notes where each document lies and how long it is; from lengths alone the
packing follows; the second gathers tokens, one sequence at a time. Memory holds the notes, never the tokens.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xxhash
from numpy.typing import NDArray

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.json_text import encode
from sft_toolkit.packers import Packing, best_fit_decreasing, next_k_fit
from sft_toolkit.packers.attention_cost import PackingStatistics, attention_costs, packing_statistics
from sft_toolkit.packers.balance import DataSetMix
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.output_checks import check_folder_options
from sft_toolkit.running.runner import write_blocks
from sft_toolkit.shards.documents import DocumentReader
from sft_toolkit.shards.output import BlockReport, OutputFolder, build_manifest
from sft_toolkit.shards.packed_index import INDEX, write_index
from sft_toolkit.shards.shard_folder import ShardFolder, rendering_of
from sft_toolkit.stage import Counters
from sft_toolkit.stages.pack.scan import OVERLONG, Corpus, ScanOptions, scan_shards, shuffled
from sft_toolkit.stages.pack.write import BlockWriter, blocks_of

METHODS = ("nkf", "bfd")
DEFAULT_CAPACITY = 262_144
_TOKENS_PER_SHARD = 1 << 28
_WORTH_A_POOL = 1_000_000


@dataclass(frozen=True)
class PackOptions:
    """What decides what comes out. `k` is the number of open bins, or, for bfd, of those carried between chunks."""

    capacity: int = DEFAULT_CAPACITY
    k: int = 256
    method: str = "nkf"
    overlong: str = "error"
    shuffle: bool = True
    labels: bool = False
    seed: int = 0

    name: ClassVar[str] = "pack"
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UsageError(f"--method {self.method}: unknown", f"choose one of {', '.join(METHODS)}")
        if self.overlong not in OVERLONG:
            raise UsageError(f"--overlong {self.overlong}: unknown", f"choose one of {', '.join(OVERLONG)}")

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

    def mix(self) -> DataSetMix:
        """Tokens of each data set in each sequence, by the codes of the corpus."""
        width = len(self.corpus.datasets)
        datasets, lengths = (self.corpus.documents[name][self.packing.documents] for name in ("dataset", "length"))
        sequence = np.repeat(np.arange(self.packing.sequences), np.diff(self.packing.offsets))
        cells, place = np.unique(sequence * width + datasets, return_inverse=True)
        tokens = np.bincount(place, weights=lengths).astype(np.int64)
        offsets = np.searchsorted(cells, np.arange(self.packing.sequences + 1) * width)
        return DataSetMix(offsets, cells % width, tokens)


def run_pack(options: PackOptions, run: RunOptions) -> Summary:
    """Pack the token shard folders of `run` into its output folder.

    Raises UsageError and ToolkitError as `run_stage` does, and RecordError for an over-long document under
    `overlong="error"` where faults are not quarantined.
    """
    begun = time.monotonic()
    inputs = _token_folders(run)
    rendering = rendering_of(inputs)
    folder = OutputFolder(Path(run.output))
    pins = _pins(options, run, inputs)
    if not run.dry_run and not folder.prepare(pins, force=run.force, resume=run.goes_on):
        return Summary(options.name, run.output, Counters(), time.monotonic() - begun, finished_before=True)
    planned = _first_pass(inputs, options, None if run.dry_run else folder, run)
    facts = asdict(planned.statistics(options.capacity))
    counters = planned.corpus.counters
    if run.dry_run:
        return Summary(f"{options.name} (dry run)", "nothing", counters, time.monotonic() - begun, facts=facts)
    reports = _second_pass(planned, options, folder, run)
    complete = len(reports) == -(-planned.packing.sequences // _sequences_per_shard(options, run))
    if complete:
        shards = [folder.shard_path(index) for index in range(len(reports))]
        write_index(folder.path / INDEX, shards, planned.mix(), planned.corpus.datasets)
        described = {**_described(options, run), **rendering, "statistics": facts}
        folder.complete(build_manifest("packed", pins, reports, counters, **described))
    tokens = sum(report.shard.tokens for report in reports)
    seconds = time.monotonic() - begun
    return Summary(options.name, run.output, counters, seconds, tokens, len(reports), complete=complete, facts=facts)


def _first_pass(
    inputs: list[ShardFolder], options: PackOptions, folder: OutputFolder | None, run: RunOptions
) -> _Planned:
    paths = [path for source in inputs for path in source.paths]
    few = sum(source.rows for source in inputs) < _WORTH_A_POOL
    corpus = scan_shards(paths, options.scan, folder, replace(run, workers=1) if few else run)
    documents = corpus.documents
    if not len(documents):
        raise ToolkitError(f"{', '.join(run.inputs)}: no document is left to pack", _why_not(corpus.counters))
    reader = DocumentReader(tuple(paths))
    order = shuffled(documents, reader.name) if options.shuffle else np.arange(len(documents))
    packing = options.pack(documents["length"][order])
    return _Planned(corpus, Packing(order[packing.documents], packing.offsets), reader)


def _second_pass(planned: _Planned, options: PackOptions, folder: OutputFolder, run: RunOptions) -> list[BlockReport]:
    """Write the shards that are not there yet; the corpus' counters come to hold what is in all of them."""
    blocks = blocks_of(planned.corpus.documents, planned.packing, _sequences_per_shard(options, run))
    reports = []
    for report in write_blocks(folder, blocks, BlockWriter(folder, planned.reader, options.labels), run):
        reports.append(report)
        planned.corpus.counters.add(report.counters)
        run.progress(planned.corpus.counters)
    return reports


def _why_not(counters: Counters) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in counters.rejected.items()) or "is the input empty?"


def _sequences_per_shard(options: PackOptions, run: RunOptions) -> int:
    """As many as the user said, but no more than about 1 GiB of them."""
    return max(1, min(run.rows_per_shard, _TOKENS_PER_SHARD // options.capacity))


def _token_folders(run: RunOptions) -> list[ShardFolder]:
    """Raises UsageError unless folders go in and another folder comes out, ToolkitError for a folder that is unfit."""
    if not run.to_folder:
        raise UsageError("packed shards are a folder", "name it with --output")
    for given in run.inputs:
        if not Path(given).is_dir():
            raise UsageError(f"{given}: not a folder", "pack reads folders of token shards, as render writes them")
    folders = [ShardFolder(given, "tokens") for given in run.inputs]
    check_folder_options(run)
    return folders


def _pins(options: PackOptions, run: RunOptions, inputs: list[ShardFolder]) -> dict[str, Any]:
    """What must be the same for a run to be resumed."""
    return {
        "stage": options.name,
        "version": options.version,
        "options": asdict(options),
        "rows_per_shard": _sequences_per_shard(options, run),
        "quarantine": run.quarantine,
        "inputs": [_fingerprint(folder) for folder in inputs],
    }


def _fingerprint(folder: ShardFolder) -> dict[str, Any]:
    checksums = encode([shard["blake2b"] for shard in folder.manifest["shards"]])
    return {"rows": folder.rows, "shards": xxhash.xxh3_128_hexdigest(checksums)}


def _described(options: PackOptions, run: RunOptions) -> dict[str, Any]:
    return {
        "stage": options.name,
        "stage_version": options.version,
        "options": run.resolved_options,
        "seed": run.seed,
        "capacity": options.capacity,
    }
