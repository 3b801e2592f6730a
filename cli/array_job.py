"""Which share of the blocks this process does: what --shard says, else the environment of an array job.

The default, auto, never loses work: tasks that name one output share its blocks, and a task that is alone in its
output, as in an array over data sets, does them all. What only --shard I/N can say is a share that stays fixed whoever
else is there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sft_toolkit.errors import UsageError

if TYPE_CHECKING:
    from sft_toolkit.running.roster import ArrayTask

AUTO, NONE = "auto", "none"
_INDEX, _COUNT = "KOLIBRI_SFT_SHARD_INDEX", "KOLIBRI_SFT_SHARD_COUNT"
_SLURM_COUNT = "SLURM_ARRAY_TASK_COUNT"
_SLURM = {"task": "SLURM_ARRAY_TASK_ID", "first": "SLURM_ARRAY_TASK_MIN", "step": "SLURM_ARRAY_TASK_STEP"}


def part_of(shard: str, environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """(part, parts), the part counted from 0: (0, 1) where --shard and our own variables say nothing.

    Raises UsageError where what says so makes no sense.
    """
    if shard == NONE:
        return 0, 1
    if shard != AUTO:
        index, _, count = shard.partition("/")
        return _part(f"--shard {shard}", index, count)
    if _INDEX in environment or _COUNT in environment:
        index, count = environment.get(_INDEX, ""), environment.get(_COUNT, "")
        return _part(f"{_INDEX}={index} {_COUNT}={count}", index, count)
    return 0, 1


def array_task_of(shard: str, environment: Mapping[str, str] = os.environ) -> ArrayTask | None:
    """The task of a Slurm array that this process is, where nothing else says what its share is.

    Slurm gives a task the bounds of the array, not the list: what was left out between them are slots without a task.
    """
    from sft_toolkit.running.roster import ArrayTask

    if shard != AUTO or {_INDEX, _COUNT, _SLURM_COUNT} & environment.keys() != {_SLURM_COUNT}:
        return None
    count = environment[_SLURM_COUNT]
    given = [environment.get(name, usual) for name, usual in zip(_SLURM.values(), ("", "0", "1"), strict=True)]
    task, first, step = given
    if not all(map(_is_number, (*given, count))):
        raise _no_part(f"task {task} of the {count} that SLURM counts from {first} by {step}")
    pace = int(step) or 1
    last = environment.get("SLURM_ARRAY_TASK_MAX", "")
    slots = (int(last) - int(first)) // pace + 1 if _is_number(last) else int(count)
    return ArrayTask(int(task), int(first), pace, max(1, slots), environment.get("SLURM_ARRAY_JOB_ID", ""))


def _part(where: str, index: str, count: str) -> tuple[int, int]:
    if _is_number(index) and _is_number(count) and int(index) < int(count):
        return int(index), int(count)
    raise _no_part(where)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _no_part(where: str) -> UsageError:
    return UsageError(f"{where}: not a part I of N", "part I counts from 0: --shard 0/8 is the first of eight")
