"""The way of the data: source, blocks, stage, sink, manifest. What comes out depends on none of the drivers."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sft_toolkit.conversation import Conversation
from sft_toolkit.running.folder_writer import FolderWork, fingerprint, known_inputs, write_folder
from sft_toolkit.running.meter import Meter
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.output_checks import check_folder_options, check_stream_options
from sft_toolkit.running.passes import input_blocks, naming_repeats, no_records, read_batches
from sft_toolkit.running.row_reader import RowReader
from sft_toolkit.shards.atomic import write_text
from sft_toolkit.shards.ids import IdLedger, shard_ids
from sft_toolkit.shards.jsonl import encode_row, open_sink
from sft_toolkit.shards.output import BlockReport, OutputFolder, rejection_lines
from sft_toolkit.shards.records import to_row
from sft_toolkit.shards.schemas import RECORDS, kind_of
from sft_toolkit.shards.sources import Block, Source
from sft_toolkit.shards.writer import describe, shard_writer
from sft_toolkit.stage import Counters, Outcome, Rejection, Stage

_ROWS_PER_STREAMED_BLOCK = 512


def run_stage(stage: Stage, run: RunOptions) -> Summary:
    """Run `stage` over the inputs into a shard folder, a JSONL file or stdout.

    Raises ToolkitError (input, output, environment), UsageError, or RecordError for the first faulty record where
    faults are not quarantined.
    """
    if run.dry_run:
        return _dry_run(stage, run)
    source = Source(run.inputs, run.copies, checksums=run.checksums)
    with naming_repeats(run):
        return write_folder(_StageWork(stage, run, source)) if run.to_folder else _run_to_stream(stage, run, source)


def require_output(run: RunOptions, *, known: bool) -> None:
    """Refuse an output that no stage may write, before any expensive work; `known` as for `check_output`.

    For what has yet to find out some of the stage's options. Raises UsageError or ToolkitError as `run_stage` does.
    """
    if run.to_folder:
        check_folder_options(run)
        OutputFolder(Path(run.output)).require_usable(force=run.force, resume=known)
    else:
        check_stream_options(run)


def check_output(stage: Stage, run: RunOptions, *, known: bool) -> None:
    """Refuse an output that the run may not write, before any expensive work; `known` lets it resume an earlier run's.

    Raises UsageError or ToolkitError as `run_stage` does.
    """
    if run.to_folder:
        check_folder_options(run)
        OutputFolder(Path(run.output)).prepare(_fingerprint(stage, run), force=run.force, resume=known)
    else:
        check_stream_options(run)


def output_of(stages: Iterable[Stage], run: RunOptions) -> Stage | None:
    """The first of the stages that made, or began, what the run's shard folder holds of the same inputs."""
    inputs, folder = Source(run.inputs, run.copies).fingerprints(), OutputFolder(Path(run.output))
    return next((stage for stage in stages if folder.is_of(fingerprint(stage, run, inputs, run.rows_per_shard))), None)


def forget_output(stage: Stage, run: RunOptions, *, every_part: bool = False) -> None:
    """Take back that this part of a checked shard folder is finished: the same inputs now give other rows.

    `every_part`: nothing in it is as `stage` would make it.
    """
    OutputFolder(Path(run.output)).forget(_fingerprint(stage, run), (0, 1) if every_part else run.part)


def _rows(stage: Stage, block: Block, outcome: Outcome, reader: RowReader) -> Iterator[Any]:
    for batch in read_batches(block, outcome, reader):
        for row in stage.process(batch, outcome):
            outcome.counters.records_out += 1
            yield row


def _block_to_shard(
    stage: Stage, folder: OutputFolder, quarantine: bool, reader: RowReader, block: Block
) -> BlockReport:
    outcome = Outcome(quarantine)
    path = folder.shard_path(block.index)
    with shard_writer(path, stage.schema or RECORDS, folder.unfinished) as writer:
        for row in _rows(stage, block, outcome, reader):
            writer.write(to_row(row) if isinstance(row, Conversation) else row)
    block.discard()
    report = BlockReport(block.index, describe(path, writer), outcome.counters)
    folder.report(report, outcome.rejections)
    return report


class _StageWork(FolderWork[Block]):
    """The blocks of the source, of which the stage makes one shard each."""

    def __init__(self, stage: Stage, run: RunOptions, source: Source) -> None:
        super().__init__(stage, run)
        self.kind = kind_of(stage.schema or RECORDS) or "records"
        self._stage = stage
        self._source = source

    def inputs(self, known: Sequence[Mapping[str, Any]] = ()) -> list[Any]:
        return self._source.fingerprints(known)

    def unique_ids(self, shard: Path) -> list[str]:
        return self._stage.unique_ids(shard_ids(shard))

    def tasks(self, folder: OutputFolder, spool: Path) -> Iterator[Block]:
        for name, text in self._stage.side_files().items():
            write_text(folder.path / name, text)
        self.run.reader.meter.begin(self._source.size)
        return self._source.blocks(self.rows_per_shard, spool)

    def writer(self, folder: OutputFolder) -> Callable[[Block], BlockReport]:
        return partial(_block_to_shard, self._stage, folder, self.run.quarantine, self.run.reader)

    @property
    def discard(self) -> Callable[[Block], None]:
        return partial(_pass_over, self.run.reader.meter)

    def finish(self, folder: OutputFolder, shards: list[Path]) -> dict[str, Any]:
        return self._stage.facts()


def _pass_over(meter: Meter, block: Block) -> None:
    """A block that was done before, or is another part's."""
    block.discard()
    meter.add(0, 0, skipped=block.size)


@dataclass(frozen=True, slots=True)
class _Lines:
    """A block's output as JSONL, with the ids in it that must be unique, and what became of its records."""

    data: bytes
    ids: list[str]
    counters: Counters
    rejections: list[Rejection]
    tokens: int
    loss_tokens: int


def _block_to_lines(stage: Stage, quarantine: bool, reader: RowReader, block: Block) -> _Lines:
    outcome = Outcome(quarantine)
    lines, ids, tokens, loss_tokens = [], [], 0, 0
    counts = kind_of(stage.schema or RECORDS) == "tokens"
    for row in _rows(stage, block, outcome, reader):
        lines.append(encode_row(row))
        ids.append(row.id if isinstance(row, Conversation) else row["id"])
        if counts:
            tokens, loss_tokens = tokens + row["length"], loss_tokens + row["loss_tokens"]
    block.discard()
    unique = stage.unique_ids(ids)
    return _Lines(b"".join(lines), unique, outcome.counters, outcome.rejections, tokens, loss_tokens)


def _run_to_stream(stage: Stage, run: RunOptions, source: Source) -> Summary:
    begun = time.monotonic()
    check_stream_options(run)
    summary, ledger = Summary(stage.name, run.output, Counters(), 0.0), IdLedger()
    rows_per_block = min(run.rows_per_shard, _ROWS_PER_STREAMED_BLOCK)
    run.reader.meter.begin(source.size)
    work = partial(_block_to_lines, stage, run.quarantine, run.reader)
    with (
        tempfile.TemporaryDirectory(prefix="kolibri-sft-") as spool,
        open_sink(run.output) as write,
        rejection_sink(run) as write_rejected,
    ):
        for lines in run.drive(source.blocks(rows_per_block, Path(spool)), work):
            ledger.add(lines.ids)
            write(lines.data)
            for line in rejection_lines(lines.rejections):
                write_rejected(line)
            summary.counters.add(lines.counters)
            summary.tokens += lines.tokens
            summary.loss_tokens += lines.loss_tokens
            run.progress(summary.counters)
        if summary.counters.records_in == 0:
            raise no_records(run)
    summary.seconds = time.monotonic() - begun
    return summary


@contextmanager
def rejection_sink(run: RunOptions) -> Iterator[Callable[[bytes], Any]]:
    """A function that takes the quarantine's lines, and loses them where no file is named."""
    if run.quarantine_file is None:
        yield lambda line: None
    else:
        with open_sink(run.quarantine_file) as write:
            yield write


def _dry_run(stage: Stage, run: RunOptions) -> Summary:
    """Process the first rows and write nothing: shows that input, options and template fit together."""
    outcome = Outcome(run.quarantine)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kolibri-sft-") as spool:
        block = next(input_blocks(run, Path(spool)), None)
        if block is None:
            raise no_records(run)
        for _ in _rows(stage, block, outcome, run.reader):
            pass
    return Summary(f"{stage.name} (dry run)", "nothing", outcome.counters, time.monotonic() - begun)


def _fingerprint(stage: Stage, run: RunOptions) -> dict[str, Any]:
    inputs = Source(run.inputs, run.copies).fingerprints(known_inputs(run))
    return fingerprint(stage, run, inputs, run.rows_per_shard)
