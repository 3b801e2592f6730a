"""How far the writing of a shard folder has come: done and missing blocks, who works on it, what to submit again."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sft_toolkit.errors import UsageError
from sft_toolkit.json_text import decode
from sft_toolkit.running.roster import SECONDS_BETWEEN_SIGNS, Shares, read_shares
from sft_toolkit.shards.output import OutputFolder
from sft_toolkit.shards.shard_folder import ShardFolder, is_shard_folder

_SECONDS_WITHOUT_SIGN = 5 * SECONDS_BETWEEN_SIGNS


@dataclass(frozen=True, slots=True)
class TaskState:
    """A process that registered: running, ended, failed (with the error), stopped by a signal, or lost."""

    name: str
    state: str
    host: str
    pid: int
    task: int | None = None
    job: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class FolderStatus:
    """`blocks` is their number, None while no run has seen the end of the input; `done` are those finished."""

    path: Path
    whole: bool
    begun: bool
    done: Sequence[int]
    blocks: int | None = None
    tasks: Sequence[TaskState] = ()
    shares: Shares | None = None
    missing: Sequence[int] = field(default=())

    @property
    def again(self) -> list[int]:
        """The tasks of the array job to submit again: not running, and not known to have finished their share."""
        if self.whole or self.shares is None:
            return []
        known = {task.task: task for task in self.tasks if task.task is not None}
        if len(known) == 1:
            slots = [slot for slot in map(self.shares.slot, known) if slot is not None]
        else:
            slots = list(range(self.shares.slots))
        numbers = {slot: self.shares.number(slot) for slot in slots}
        return [number for slot, number in numbers.items() if self._is_left(known.get(number), slot, len(known) == 1)]

    def _is_left(self, task: TaskState | None, slot: int, alone: bool) -> bool:
        if task is not None and task.state == "running":
            return False
        if self.blocks is None or self.shares is None:
            return task is None or task.state != "ended"
        return bool(self.missing) if alone else any(block % self.shares.slots == slot for block in self.missing)

    def to_json(self) -> dict[str, Any]:
        return {
            "output": str(self.path),
            "whole": self.whole,
            "done": len(self.done),
            "blocks": self.blocks,
            "missing": list(self.missing),
            "tasks": [
                {"name": task.name, "state": task.state, "host": task.host, "pid": task.pid, "error": task.error}
                for task in self.tasks
            ],
            "array": ranges(self.again),
        }


def folder_status(path: Path) -> FolderStatus:
    """Raises UsageError for what is no shard folder, ToolkitError for a finished one with a damaged shard."""
    folder = OutputFolder(path)
    if folder.is_finished:
        shards = len(ShardFolder(path).paths)
        return FolderStatus(path, True, True, range(shards), shards)
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return FolderStatus(path, False, False, ())
    if not is_shard_folder(path):
        raise UsageError(f"{path}: no shard folder", "name a folder that a command writes with `output`")
    done = [block for block in folder.finished_blocks() if folder.finished(block) is not None]
    blocks = folder.blocks()
    end = blocks if blocks is not None else max(done, default=-1) + 1
    missing = sorted(set(range(end)) - set(done))
    return FolderStatus(path, False, True, done, blocks, _tasks(folder), read_shares(folder), missing)


def _tasks(folder: OutputFolder) -> list[TaskState]:
    found = []
    for path in folder.tasks.glob("*.json"):
        try:
            facts, shown = decode(path.read_bytes()), path.stat().st_mtime
        except FileNotFoundError:
            continue
        state = TaskState(name=path.stem, **facts)
        lost = state.state == "running" and not _lives(state, shown)
        found.append(TaskState(name=path.stem, **{**facts, "state": "lost"}) if lost else state)
    return sorted(found, key=lambda task: (task.task if task.task is not None else -1, task.name))


def _lives(task: TaskState, shown: float) -> bool:
    """A killed process shows no sign of life; on this machine its number says so at once."""
    if task.host == socket.gethostname():
        return _is_there(task.pid)
    return time.time() - shown < _SECONDS_WITHOUT_SIGN


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers as Slurm's --array takes them: 1,4-6."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
