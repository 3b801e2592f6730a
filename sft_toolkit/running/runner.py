"""The way of the data: source, blocks, stage, sink, manifest. What comes out depends on none of the drivers."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import ToolkitError
from sft_toolkit.formats import RecordReader
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.output_checks import check_folder_options, check_stream_options
from sft_toolkit.running.passes import input_blocks, no_records, read_batches
from sft_toolkit.shards.atomic import write_text
from sft_toolkit.shards.ids import IdLedger, shard_ids
from sft_toolkit.shards.jsonl import encode_row, open_sink
from sft_toolkit.shards.output import BlockReport, OutputFolder, build_manifest, rejection_lines
from sft_toolkit.shards.records import to_row
from sft_toolkit.shards.schemas import RECORDS, kind_of
from sft_toolkit.shards.sources import Block, Source
from sft_toolkit.shards.writer import describe, shard_writer
from sft_toolkit.stage import Counters, Outcome, Rejection, Stage

_ROWS_PER_STREAMED_BLOCK = 512


class Indexed(Protocol):
    """What becomes one shard; `index` counts from 0 and numbers that."""

    @property
    def index(self) -> int: ...


Task = TypeVar("Task", bound=Indexed)


def run_stage(stage: Stage, run: RunOptions) -> Summary:
    """Run `stage` over the inputs into a shard folder, a JSONL file or stdout.

    Raises ToolkitError (input, output, environment), UsageError, or RecordError for the first faulty record where
    faults are not quarantined.
    """
    if run.dry_run:
        return _dry_run(stage, run)
    source = Source(run.inputs, run.stdin_copy)
    if not run.to_folder:
        return _run_to_stream(stage, run, source)
    pins = _pins(stage, run, source)
    return write_folder(stage.name, run, pins, partial(_write_shards, stage, run, source, pins))


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
        pins = _pins(stage, run, Source(run.inputs, run.stdin_copy))
        OutputFolder(Path(run.output)).prepare(pins, force=run.force, resume=known)
    else:
        check_stream_options(run)


def forget_output(stage: Stage, run: RunOptions) -> None:
    """Take back that this part of a checked shard folder is finished: the same inputs now give other rows."""
    pins = _pins(stage, run, Source(run.inputs, run.stdin_copy))
    OutputFolder(Path(run.output)).forget(pins, run.part)


def write_blocks(
    folder: OutputFolder,
    tasks: Iterable[Task],
    work: Callable[[Task], BlockReport],
    run: RunOptions,
    discard: Callable[[Task], None] | None = None,
) -> Iterator[BlockReport]:
    """Run `work` on each task of this process's part whose shard is not there yet.

    Yields the report of every finished block: in order, and then those that other parts of an array job finished
    after they were passed over here, so that the last part to finish sees them all. `work` and `discard` (called on
    what is passed over) are pickled to the workers.
    """
    job = partial(_unless_finished, folder, work, discard, run.part)
    passed_over = []
    for index, report in enumerate(run.drive(iter(tasks), job)):
        if report is not None:
            yield report
        else:
            passed_over.append(index)
    yield from filter(None, map(folder.finished, passed_over))


def _unless_finished(
    folder: OutputFolder,
    work: Callable[[Task], BlockReport],
    discard: Callable[[Task], None] | None,
    part: tuple[int, int],
    task: Task,
) -> BlockReport | None:
    done = folder.finished(task.index)
    if done is None and task.index % part[1] == part[0] and not folder.is_finished:
        return work(task)
    if discard is not None:
        discard(task)
    return done


def _rows(stage: Stage, block: Block, outcome: Outcome, reader: RecordReader) -> Iterator[Any]:
    for batch in read_batches(block, outcome, reader):
        for row in stage.process(batch, outcome):
            outcome.counters.records_out += 1
            yield row


def _block_to_shard(
    stage: Stage, folder: OutputFolder, quarantine: bool, reader: RecordReader, block: Block
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


def write_folder(name: str, run: RunOptions, pins: dict[str, Any], write: Callable[[OutputFolder], Summary]) -> Summary:
    """Call `write` with the run's output folder, made ready for a run that `pins` identify, unless that is finished.

    What stops `write` once another part of an array job has finished the folder is no error: nothing is left to do,
    and with its last shard that part took away the place for temporary files. Raises as `run_stage` does.
    """
    begun = time.monotonic()
    check_folder_options(run)
    folder = OutputFolder(Path(run.output))
    if folder.prepare(pins, force=run.force, resume=run.goes_on):
        try:
            return write(folder)
        except (OSError, ToolkitError):
            if not folder.is_finished:
                raise
    return Summary(name, run.output, Counters(), time.monotonic() - begun, finished_before=True)


def _write_shards(stage: Stage, run: RunOptions, source: Source, pins: dict[str, Any], folder: OutputFolder) -> Summary:
    begun = time.monotonic()
    for name, text in stage.side_files().items():
        write_text(folder.path / name, text)
    work = partial(_block_to_shard, stage, folder, run.quarantine, run.reader)
    reports, counters, ledger = [], Counters(), IdLedger()
    with tempfile.TemporaryDirectory(prefix="spool-", dir=folder.unfinished) as spool:
        blocks = Counted(source.blocks(run.rows_per_shard, Path(spool)))
        for report in write_blocks(folder, blocks, work, run, discard=Block.discard):
            reports.append(report)
            counters.add(report.counters)
            if stage.draws:
                ledger.add(shard_ids(folder.shard_path(report.index)))
            run.progress(counters)
    complete = len(reports) == blocks.count
    if complete and counters.records_in == 0:
        raise no_records(run)
    if complete:
        kind = kind_of(stage.schema or RECORDS) or "records"
        folder.complete(build_manifest(kind, pins, reports, counters, **_described(stage, run)))
    tokens = sum(report.shard.tokens for report in reports)
    seconds = time.monotonic() - begun
    return Summary(stage.name, run.output, counters, seconds, tokens, len(reports), complete=complete)


class Counted(Generic[Task]):
    """Tasks, with a memory of how many were given: a folder with as many shards is complete."""

    def __init__(self, tasks: Iterator[Task]) -> None:
        self._tasks = tasks
        self.count = 0

    def __iter__(self) -> Iterator[Task]:
        for task in self._tasks:
            self.count += 1
            yield task


@dataclass(frozen=True, slots=True)
class _Lines:
    """A block's output as JSONL, with what became of its records."""

    data: bytes
    ids: list[str]
    counters: Counters
    rejections: list[Rejection]


def _block_to_lines(stage: Stage, quarantine: bool, reader: RecordReader, block: Block) -> _Lines:
    outcome = Outcome(quarantine)
    lines, ids = [], []
    for row in _rows(stage, block, outcome, reader):
        lines.append(encode_row(row))
        ids.append(row.id if isinstance(row, Conversation) else row["id"])
    block.discard()
    return _Lines(b"".join(lines), ids, outcome.counters, outcome.rejections)


def _run_to_stream(stage: Stage, run: RunOptions, source: Source) -> Summary:
    begun = time.monotonic()
    check_stream_options(run)
    counters, ledger = Counters(), IdLedger()
    rows_per_block = min(run.rows_per_shard, _ROWS_PER_STREAMED_BLOCK)
    work = partial(_block_to_lines, stage, run.quarantine, run.reader)
    with (
        tempfile.TemporaryDirectory(prefix="kolibri-sft-") as spool,
        open_sink(run.output) as write,
        rejection_sink(run) as write_rejected,
    ):
        for lines in run.drive(source.blocks(rows_per_block, Path(spool)), work):
            if stage.draws:
                ledger.add(lines.ids)
            write(lines.data)
            for line in rejection_lines(lines.rejections):
                write_rejected(line)
            counters.add(lines.counters)
            run.progress(counters)
        if counters.records_in == 0:
            raise no_records(run)
    return Summary(stage.name, run.output, counters, time.monotonic() - begun)


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


def _pins(stage: Stage, run: RunOptions, source: Source) -> dict[str, Any]:
    """What must be the same for a run to be resumed."""
    return {
        "stage": stage.name,
        "options_hash": stage.options_hash,
        "rows_per_shard": run.rows_per_shard,
        "quarantine": run.quarantine,
        **run.reader.to_json(),
        "inputs": source.fingerprints(),
    }


def _described(stage: Stage, run: RunOptions) -> dict[str, Any]:
    return {
        "stage": stage.name,
        "stage_version": stage.version,
        "options": run.resolved_options,
        "seed": run.seed,
        **stage.facts(),
    }
