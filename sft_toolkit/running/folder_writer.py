"""The one writer of shard folders: the run's fingerprint, the loop over its tasks, the manifest's account of it.

A command says as FolderWork what its tasks are and how one becomes a shard; all else is the same for every command.
"""

from __future__ import annotations

import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from sft_toolkit.errors import ToolkitError
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.output_checks import check_folder_options
from sft_toolkit.running.passes import no_records
from sft_toolkit.running.roster import Share, registered
from sft_toolkit.running.row_reader import RowReader
from sft_toolkit.shards.ids import IdLedger, shard_ids
from sft_toolkit.shards.output import BlockReport, OutputFolder, build_manifest
from sft_toolkit.shards.pins import pinned_options
from sft_toolkit.stage import Counters, StageOptions

_STATED_OF_RUN = ("rows_per_shard", "quarantine", "driver", "workers")
_NOT_STATED = ("part", "array", "ray_address")  # of an array job: each part has its own


class Indexed(Protocol):
    """What becomes one shard; `index` counts from 0 and numbers that."""

    @property
    def index(self) -> int: ...


Task = TypeVar("Task", bound=Indexed)


class FolderWork(ABC, Generic[Task]):
    """What one run of a command puts into a shard folder. `counters` hold its account of the input."""

    kind: str
    """Of the shards: records, tokens or packed."""

    def __init__(self, stage: StageOptions, run: RunOptions) -> None:
        self.stage = stage
        self.run = run
        self.counters = Counters()

    @property
    def rows_per_shard(self) -> int:
        return self.run.rows_per_shard

    @abstractmethod
    def inputs(self, known: Sequence[Mapping[str, Any]] = ()) -> list[Any]:
        """Fingerprints of the content of the inputs, JSON-ready; `known` are those of the run that is resumed."""

    @abstractmethod
    def tasks(self, folder: OutputFolder, spool: Path) -> Iterable[Task]:
        """What becomes one shard each, in order. A first pass over the input comes before the first task.

        `spool` is a folder for temporary files.
        """

    @abstractmethod
    def writer(self, folder: OutputFolder) -> Callable[[Task], BlockReport]:
        """What writes the shard of a task, reports it to the folder and accounts for it; called after `tasks`.

        It is pickled to the workers.
        """

    @property
    def discard(self) -> Callable[[Task], None] | None:
        """What is called, in a worker, on a task that is not done here."""
        return None

    def finish(self, folder: OutputFolder, shards: list[Path]) -> dict[str, Any]:
        """Write what lies beside the shards of a complete folder; returns what its manifest is to hold besides."""
        return {}

    def facts(self) -> dict[str, Any]:
        """What the summary is to hold beside the counts."""
        return {}

    def unique_ids(self, shard: Path) -> list[str]:
        """Those of the ids in a shard that must not occur twice."""
        return shard_ids(shard)

    def tokens(self, reports: list[BlockReport]) -> tuple[int, int]:
        """Tokens, and those of them with loss."""
        return sum(report.shard.tokens for report in reports), sum(report.shard.loss_tokens for report in reports)


def write_folder(work: FolderWork[Task]) -> Summary:
    """Do `work` in the output folder of its run, unless that is finished.

    What stops it once another part of an array job has finished the folder is no error: nothing is left to do, and
    with its last shard that part took away the place for temporary files. Raises as `run_stage` does.
    """
    begun = time.monotonic()
    run, name = work.run, work.stage.name
    check_folder_options(run)
    folder = OutputFolder(Path(run.output))
    pins = fingerprint(work.stage, run, work.inputs(known_inputs(run)), work.rows_per_shard)
    if folder.prepare(pins, force=run.force, resume=run.goes_on):
        try:
            with registered(folder, run.part, run.array) as share:
                reports, complete = _write_shards(work, folder, pins, share)
        except (OSError, ToolkitError):
            if not folder.is_finished:
                raise
        else:
            seconds = time.monotonic() - begun
            tokens, loss_tokens = work.tokens(reports)
            return Summary(
                name,
                run.output,
                work.counters,
                seconds,
                tokens,
                len(reports),
                complete=complete,
                facts=work.facts(),
                loss_tokens=loss_tokens,
            )
    return Summary(name, run.output, Counters(), time.monotonic() - begun, finished_before=True)


def known_inputs(run: RunOptions) -> list[dict[str, Any]]:
    """The fingerprints that the output folder is pinned to, where the run resumes it."""
    pins = OutputFolder(Path(run.output)).pinned() if run.goes_on else None
    return list((pins or {}).get("inputs", []))


def fingerprint(stage: StageOptions, run: RunOptions, inputs: list[Any], rows_per_shard: int) -> dict[str, Any]:
    """What must be the same for a run to be resumed."""
    return {
        "stage": stage.name,
        "options_hash": stage.options_hash,
        "options": pinned_options(stage.options()),
        "rows_per_shard": rows_per_shard,
        "quarantine": run.quarantine,
        **run.reader.to_json(),
        "inputs": inputs,
    }


def stated_options(stage: StageOptions, run: RunOptions) -> dict[str, Any]:
    """Every option that decided something, with its value and where that came from.

    Values are read from what ran: the stage's fields, or, where these are no plain values, its `options`.
    """
    computed = {name: (value, None) for name, value in stage.options().items()}
    of_run = {name: option for name, option in _plain_fields(run).items() if name in _STATED_OF_RUN}
    usual = RowReader().to_json()
    of_reader = {name: (value, usual[name]) for name, value in run.reader.to_json().items()}
    found = {**computed, **_plain_fields(stage), **of_reader, **of_run}
    return {
        name: {"value": value, "from": run.origins.get(name) or ("default" if value == default else "caller")}
        for name, (value, default) in found.items()
        if name not in _NOT_STATED
    }


def _plain_fields(options: Any) -> dict[str, tuple[Any, Any]]:
    """Value and default of each field that holds a plain value."""
    values = {option: getattr(options, option.name) for option in fields(options)}
    return {option.name: (value, option.default) for option, value in values.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)


def _write_shards(
    work: FolderWork[Task], folder: OutputFolder, pins: dict[str, Any], share: Share
) -> tuple[list[BlockReport], bool]:
    """The reports of all shards that are there, and whether these are all."""
    run, ledger = work.run, IdLedger()
    reports: list[BlockReport] = []
    with tempfile.TemporaryDirectory(prefix="spool-", dir=folder.unfinished) as spool:
        tasks = _Counted(work.tasks(folder, Path(spool)))
        for report in _write_blocks(work, folder, tasks, share):
            reports.append(report)
            work.counters.add(report.counters)
            ledger.add(work.unique_ids(folder.shard_path(report.index)))
            run.progress(work.counters)
    complete = len(reports) == tasks.count
    if not complete:
        folder.note_blocks(tasks.count)
    if complete and work.counters.records_in == 0:
        raise no_records(run)
    if complete:
        shards = [folder.shard_path(index) for index in range(len(reports))]
        more = work.finish(folder, shards)
        described = {
            "stage": work.stage.name,
            "stage_version": work.stage.version,
            "options": stated_options(work.stage, run),
            "seed": work.stage.random_seed,
        }
        folder.complete(build_manifest(work.kind, pins, reports, work.counters, **described, **more))
    return reports, complete


class _Counted(Generic[Task]):
    """Tasks, with a memory of how many were given: a folder with as many shards is complete."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._tasks = tasks
        self.count = 0

    def __iter__(self) -> Iterator[Task]:
        for task in self._tasks:
            self.count += 1
            yield task


def _write_blocks(
    work: FolderWork[Task], folder: OutputFolder, tasks: Iterable[Task], share: Share
) -> Iterator[BlockReport]:
    """Write the shard of each task of this process's part that is not there yet.

    Yields the report of every finished block: in order, and then those that other parts of an array job finished
    after they were passed over here, so that the last part to finish sees them all.
    """
    job = partial(_unless_finished, folder, work.writer(folder), work.discard, share)
    passed_over = []
    for index, report in enumerate(work.run.drive(iter(tasks), job)):
        if report is not None:
            yield report
        else:
            passed_over.append(index)
    yield from filter(None, map(folder.finished, passed_over))


def _unless_finished(
    folder: OutputFolder,
    write: Callable[[Task], BlockReport],
    discard: Callable[[Task], None] | None,
    share: Share,
    task: Task,
) -> BlockReport | None:
    done = folder.finished(task.index)
    if done is None and not folder.is_finished and share.holds(task.index):
        return write(task)
    if discard is not None:
        discard(task)
    return done
