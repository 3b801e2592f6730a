"""The folder that a run writes: pinned options, finished blocks, the manifest last."""

from __future__ import annotations

import errno
import fnmatch
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import sft_toolkit
from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.json_text import decode, encode, encode_text
from sft_toolkit.shards.atomic import atomic_path, explained, write_text, write_text_once
from sft_toolkit.shards.pins import comparable, difference
from sft_toolkit.shards.schemas import SCHEMA_VERSION
from sft_toolkit.shards.shard_folder import MANIFEST, PROGRESS
from sft_toolkit.shards.writer import ShardInfo
from sft_toolkit.stage import Counters, Rejection

_PINS = "run.json"
_BLOCKS = "blocks.json"
_QUARANTINE = "quarantine"
_INDEX = "index.parquet"
EFFORT_EDGES = "effort_edges.json"


@dataclass(frozen=True, slots=True)
class BlockReport:
    """What a worker reports of a finished block."""

    index: int
    shard: ShardInfo
    counters: Counters

    def to_json(self) -> dict[str, Any]:
        return {"index": self.index, "shard": self.shard.to_json(), "counters": self.counters.to_json()}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> BlockReport:
        return cls(value["index"], ShardInfo(**value["shard"]), Counters.from_json(value["counters"]))


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """Where shards go. Picklable: workers write their own shard and report through it."""

    path: Path

    def shard_path(self, index: int) -> Path:
        return self.path / f"part-{index:05d}.arrow"

    @property
    def unfinished(self) -> Path:
        """Where shards lie while they are written; gone once the folder is finished."""
        return self.path / PROGRESS

    def prepare(self, pins: dict[str, Any], *, force: bool, resume: bool) -> bool:
        """Make the folder ready for a run that `pins` identify; returns False where that run is already finished.

        Raises UsageError where the folder holds something else, and with `resume` where it was begun from other
        inputs or options.
        """
        self.require_usable(force=force, resume=resume)
        if force:
            self._clear()
        finished, pinned = self.is_finished, self.pinned()
        if pinned is None and not finished:
            self.unfinished.mkdir(exist_ok=True)
            if not write_text_once(self.unfinished / _PINS, encode_text(pins)):
                return self.prepare(pins, force=False, resume=resume)  # another process has begun here meanwhile
        elif pinned is None or comparable(pinned) != comparable(pins):
            raise self.begun_otherwise(difference(pinned or {}, pins) if pinned else "")
        return not finished

    def require_usable(self, *, force: bool, resume: bool) -> None:
        """Create the folder, and refuse what `prepare` would refuse whatever the pins are.

        Raises ToolkitError where it cannot be written, UsageError as `prepare` does.
        """
        self._create()
        entries = sorted(entry.name for entry in self.path.iterdir())
        if force:
            self._require_none([name for name in entries if not _is_ours(name)])
        elif not self.is_finished and self.pinned() is None:
            self._require_none([name for name in entries if name != PROGRESS])
        elif not resume:
            raise self._begun_before()

    def _begun_before(self) -> UsageError:
        if self.is_finished:
            return UsageError(
                f"{self.path}: holds a finished run", "name another `output`, or replace it: `force=True`"
            )
        blocks = len(self.finished_blocks())
        state = f"{self.path}: holds an unfinished run with {blocks:,} finished shards"
        if self.is_shared:
            return UsageError(f"{state} of an array job", "`resume=True` continues it; `status` lists what is left")
        return UsageError(state, "use `resume=True` to continue, `force=True` to start over")

    def begun_otherwise(self, reason: str) -> UsageError:
        """The error for a folder whose run cannot be resumed. Work of other tasks is never offered for removal."""
        message = f"{self.path}: was begun from other inputs or options{': ' if reason else ''}{reason}"
        if self.is_shared and not self.is_finished:
            return UsageError(message, "other tasks' shards lie there: run as it was begun, or name another `output`")
        return UsageError(message, "run as it was begun, `force=True` to start over, or another `output`")

    def finished_blocks(self) -> list[int]:
        """The blocks that are reported as finished, in order."""
        names = (path.stem.removeprefix("part-") for path in self.unfinished.glob("part-*.json"))
        return sorted(int(name) for name in names if name.isdigit())

    def note_blocks(self, count: int) -> None:
        """Keep how many blocks there are, for those who look at an unfinished folder."""
        write_text(self.unfinished / _BLOCKS, encode_text(count))

    def blocks(self) -> int | None:
        """How many blocks there are, None where no run has counted them."""
        try:
            return int(decode((self.unfinished / _BLOCKS).read_bytes()))
        except FileNotFoundError:
            return None

    @property
    def is_shared(self) -> bool:
        """True for an unfinished folder that more than one task has worked on, or was said to."""
        return len(list(self.tasks.glob("*.json"))) > 1

    @property
    def tasks(self) -> Path:
        """Where those who work on an unfinished folder register."""
        return self.unfinished / "tasks"

    def report(self, block: BlockReport, rejections: list[Rejection]) -> None:
        """Note a block as finished: its quarantined records first, then the entry that makes it count."""
        self.reject(block.index, rejections)
        write_text(self._report_path(block.index), encode_text(block.to_json()))

    def reject(self, index: int, rejections: list[Rejection]) -> None:
        """Write the records that one block or input shard rejected, if any."""
        if rejections:
            folder = self.path / _QUARANTINE
            folder.mkdir(exist_ok=True)
            write_rejected(folder / f"part-{index:05d}.jsonl", rejections)

    def finished(self, index: int) -> BlockReport | None:
        """The report of a block whose shard is there and whole, else None."""
        try:
            report = BlockReport.from_json(decode(self._report_path(index).read_bytes()))
            size = self.shard_path(index).stat().st_size
        except (FileNotFoundError, ValueError):
            return None
        return report if size == report.shard.bytes else None

    def complete(self, manifest: dict[str, Any]) -> None:
        """Write the manifest, after which the folder counts as finished, and remove the notes of progress."""
        write_text(self.path / MANIFEST, encode_text(manifest) + "\n")
        shutil.rmtree(self.path / PROGRESS, ignore_errors=True)

    def forget(self, pins: dict[str, Any], part: tuple[int, int]) -> None:
        """Count the blocks of one part of an array job, and with them the folder, as unfinished again."""
        self.unfinished.mkdir(exist_ok=True)
        write_text(self.unfinished / _PINS, encode_text(pins))
        (self.path / MANIFEST).unlink(missing_ok=True)
        for entry in (*self.unfinished.glob("part-*.json"), *(self.path / _QUARANTINE).glob("part-*.jsonl")):
            if int(entry.stem.removeprefix("part-")) % part[1] == part[0]:
                entry.unlink()

    def is_of(self, pins: dict[str, Any]) -> bool:
        """Whether the folder holds what a run that `pins` identify has made or begun."""
        pinned = self.pinned()
        return pinned is not None and comparable(pinned) == comparable(pins)

    def _report_path(self, index: int) -> Path:
        return self.path / PROGRESS / f"part-{index:05d}.json"

    def _create(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError as fault:
            raise UsageError(f"{self.path}: is a file", "name a folder, or a file that ends in .jsonl") from fault
        except OSError as fault:
            raise explained(fault, self.path) from fault
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise explained(PermissionError(errno.EACCES, "permission denied"), self.path)

    @property
    def is_finished(self) -> bool:
        return (self.path / MANIFEST).is_file()

    def pinned(self) -> dict[str, Any] | None:
        """What the run that wrote here was pinned to."""
        try:
            return dict(decode((self.path / PROGRESS / _PINS).read_bytes()))
        except FileNotFoundError:
            pass
        try:
            return dict(decode((self.path / MANIFEST).read_bytes())["pins"])
        except (FileNotFoundError, KeyError):
            return None

    def _require_none(self, strangers: list[str]) -> None:
        if strangers:
            raise UsageError(
                f"{self.path}: not empty (it holds {strangers[0]})", "name a new folder, or empty this one yourself"
            )

    def _clear(self) -> None:
        """Remove what a run of this tool writes, and nothing else."""
        (self.path / MANIFEST).unlink(missing_ok=True)
        for entry in filter(lambda entry: _is_ours(entry.name), self.path.iterdir()):
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)


def _is_ours(name: str) -> bool:
    """True for what a run of this tool writes into its folder, and what one that was killed left half written."""
    files = (MANIFEST, _INDEX, EFFORT_EDGES)
    patterns = (PROGRESS, _QUARANTINE, "part-*.arrow", *files, *(f".{file}.*.tmp" for file in files))
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def write_rejected(path: Path, rejections: list[Rejection]) -> None:
    """Write quarantined records as JSONL: where each stood, the reason, the sentence, the record."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        for line in rejection_lines(rejections):
            file.write(line)


def rejection_lines(rejections: list[Rejection]) -> Iterator[bytes]:
    for entry in rejections:
        line: dict[str, Any] = {"origin": entry.origin, "reason": entry.reason, "detail": entry.detail}
        if entry.partner is not None:
            line["partner"] = entry.partner
        yield encode({**line, "record": entry.record}) + b"\n"


def build_manifest(
    kind: str, pins: dict[str, Any], reports: list[BlockReport], counters: Counters, **more: Any
) -> dict[str, Any]:
    """The manifest of a finished folder, whose reports come in any order.

    `more` holds what the stage adds: options and their origin, hashes, seed.
    """
    return {
        "schema": kind,
        "schema_version": SCHEMA_VERSION,
        "tool": "kolibri-sft",
        "tool_version": sft_toolkit.__version__,
        **more,
        "pins": pins,
        "counters": counters.to_json(),
        "shards": [report.shard.to_json() for report in sorted(reports, key=attrgetter("index"))],
    }


def require_output_parent(path: Path) -> None:
    """Raise ToolkitError early, before any work, where an output file could not be created."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise explained(fault, path) from fault
    if path.is_dir():
        raise ToolkitError(f"{path}: is a folder", "give a file name")
