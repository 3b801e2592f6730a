"""Where blocks run. A driver decides that and nothing else: results are the same, in the same order, from each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from sft_toolkit.choices import Driver
from sft_toolkit.running.drivers import local, ray

Task = TypeVar("Task")
Result = TypeVar("Result")

DRIVERS = ("local", "ray")


def run_ordered(
    driver: Driver,
    tasks: Iterator[Task],
    work: Callable[[Task], Result],
    workers: int,
    ray_address: str | None = None,
) -> Iterator[Result]:
    """Yield `work(task)` for each task, in order; `driver` is one of DRIVERS, `workers` 0 one a processor.

    `ray_address` is of the cluster that driver ray joins.
    """
    if driver == "ray":
        return ray.run_ordered(tasks, work, workers, ray_address)
    return local.run_ordered(tasks, work, workers or local.available_workers())
