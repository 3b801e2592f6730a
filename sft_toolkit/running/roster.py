"""Who works on an unfinished shard folder, and which of its blocks are whose.

Each process that writes into a folder registers there and shows from time to time that it lives. Tasks of an array job
share blocks by the array that the first of them pinned, so that a retry of a few tasks finds their own shares again.
A task that is the only one registered takes every block: nobody else is known who would.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sft_toolkit.errors import UsageError
from sft_toolkit.json_text import decode, encode_text
from sft_toolkit.shards.atomic import write_text, write_text_once
from sft_toolkit.shards.output import OutputFolder

SECONDS_BETWEEN_SIGNS = 15.0
_ARRAY = "array.json"


@dataclass(frozen=True, slots=True)
class ArrayTask:
    """Task `number` of an array job whose `slots` count from `first` by `step`; a slot may be left out of the array."""

    number: int
    first: int = 0
    step: int = 1
    slots: int = 1
    job: str = ""

    @property
    def name(self) -> str:
        return f"task-{self.number}"


@dataclass(frozen=True, slots=True)
class Shares:
    """How blocks are shared: block b is of slot b modulo `slots`."""

    first: int
    step: int
    slots: int

    def slot(self, number: int) -> int | None:
        """The slot of a task; None for a number that is not among them."""
        slot, rest = divmod(number - self.first, self.step)
        return slot if not rest and 0 <= slot < self.slots else None

    def number(self, slot: int) -> int:
        return self.first + slot * self.step


@dataclass(frozen=True, slots=True)
class Share:
    """The blocks of one process: those of `part`; with `alone_all`, every block while no other is registered.

    Picklable: it is asked in the workers, before each block.
    """

    part: tuple[int, int] | None
    tasks: Path
    name: str
    alone_all: bool = False

    def holds(self, index: int) -> bool:
        if self.part is not None and index % self.part[1] == self.part[0]:
            return True
        return self.alone_all and self.is_alone

    @property
    def is_alone(self) -> bool:
        """True while no other process has registered."""
        return not any(path.stem != self.name for path in self.tasks.glob("*.json"))


@contextmanager
def registered(folder: OutputFolder, part: tuple[int, int], array: ArrayTask | None) -> Iterator[Share]:
    """Register this process in a prepared folder, for as long as it works there; how it ended is noted."""
    folder.tasks.mkdir(exist_ok=True)
    share = _array_share(folder, array) if array else Share(part, folder.tasks, _name(part))
    entry = _Entry(folder.tasks / f"{share.name}.json", array)
    entry.note("running")
    living = threading.Event()
    thread = threading.Thread(target=entry.show_life, args=(living,), daemon=True)
    thread.start()
    try:
        yield share
    except Exception as fault:
        entry.note("failed", " ".join(str(fault).split()))
        raise
    except BaseException:
        entry.note("stopped")
        raise
    else:
        entry.note("ended")
    finally:
        living.set()


def _name(part: tuple[int, int]) -> str:
    return "whole" if part[1] == 1 else f"part-{part[0]}-of-{part[1]}"


def _array_share(folder: OutputFolder, array: ArrayTask) -> Share:
    place = folder.unfinished / _ARRAY
    write_text_once(place, encode_text(asdict(Shares(array.first, array.step, array.slots))))
    shares = read_shares(folder)
    slot = shares.slot(array.number) if shares else None
    part = (slot, shares.slots) if shares and slot is not None else None
    share = Share(part, folder.tasks, array.name, alone_all=True)
    if part is None and shares and not share.is_alone:
        numbers = f"{shares.number(0)} to {shares.number(shares.slots - 1)}, by {shares.step}"
        raise UsageError(
            f"{folder.path}: is shared by the array tasks {numbers}; task {array.number} is none of them",
            "submit the numbers that `kolibri-sft status` lists, or name a share with `part=I/N`",
        )
    return share


def read_shares(folder: OutputFolder) -> Shares | None:
    """How the first task of an array job pinned the shares, where one has."""
    try:
        return Shares(**decode((folder.unfinished / _ARRAY).read_bytes()))
    except FileNotFoundError:
        return None


class _Entry:
    """A process's file in the roster."""

    def __init__(self, path: Path, array: ArrayTask | None) -> None:
        self._path = path
        self._facts: dict[str, Any] = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "task": array.number if array else None,
            "job": array.job if array else "",
        }

    def note(self, state: str, error: str = "") -> None:
        # Once the folder is finished, the roster is gone with all else that is there for an unfinished one.
        if self._path.parent.is_dir():
            with suppress(Exception):
                write_text(self._path, encode_text({**self._facts, "state": state, "error": error}))

    def show_life(self, ended: threading.Event) -> None:
        while not ended.wait(SECONDS_BETWEEN_SIGNS):
            with suppress(OSError):
                os.utime(self._path)
