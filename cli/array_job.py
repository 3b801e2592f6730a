"""Which part of an array job this process does: what --shard says, else the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sft_toolkit.errors import UsageError

_INDEX, _COUNT = "KOLIBRI_SFT_SHARD_INDEX", "KOLIBRI_SFT_SHARD_COUNT"
_SLURM_COUNT = "SLURM_ARRAY_TASK_COUNT"


def part_of(shard: str | None, environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """(part, parts), the part counted from 0. Raises UsageError where what says so makes no sense."""
    if shard is not None:
        index, _, count = shard.partition("/")
        return _part(f"--shard {shard}", index, count)
    if _INDEX in environment or _COUNT in environment:
        index, count = environment.get(_INDEX, ""), environment.get(_COUNT, "")
        return _part(f"{_INDEX}={index} {_COUNT}={count}", index, count)
    if _SLURM_COUNT in environment:
        return _slurm_part(environment)
    return 0, 1


def _slurm_part(environment: Mapping[str, str]) -> tuple[int, int]:
    names = ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP")
    task, first, step = (environment.get(name, usual) for name, usual in zip(names, ("", "0", "1"), strict=True))
    count = environment[_SLURM_COUNT]
    where = f"task {task} of the {count} that SLURM counts from {first} by {step}"
    if not (_is_number(task) and _is_number(first) and _is_number(step)):
        raise _no_part(where)
    places, rest = divmod(int(task) - int(first), int(step) or 1)
    if rest:
        raise _no_part(where)
    return _part(where, str(places), count)


def _part(where: str, index: str, count: str) -> tuple[int, int]:
    if _is_number(index) and _is_number(count) and int(index) < int(count):
        return int(index), int(count)
    raise _no_part(where)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _no_part(where: str) -> UsageError:
    return UsageError(f"{where}: not a part I of N", "part I counts from 0: --shard 0/8 is the first of eight")
