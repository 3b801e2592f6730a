"""Where blocks run. A driver decides that and nothing else: results are the same, in the same order, from each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from sft_toolkit.choices import Driver
from sft_toolkit.running.drivers import local, ray

Task = TypeVar("Task")
Result = TypeVar("Result")

DRIVERS = {"local": local.run_ordered, "ray": ray.run_ordered}


def run_ordered(
    driver: Driver, tasks: Iterator[Task], work: Callable[[Task], Result], workers: int
) -> Iterator[Result]:
    """Yield `work(task)` for each task, in order; `driver` is one of DRIVERS, `workers` 0 one a processor."""
    return DRIVERS[driver](tasks, work, workers or local.available_workers())
