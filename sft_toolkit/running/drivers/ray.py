"""Run work over tasks on a Ray cluster, or on one that is started here. Results come back in the order of the tasks.

Tasks name files: every node must see the inputs and the output under the same paths.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.running.drivers.window import in_order

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_ordered(tasks: Iterator[Task], work: Callable[[Task], Result], workers: int) -> Iterator[Result]:
    """Yield `work(task)` for each task, in order, from `workers` actors that each hold `work` for all their tasks.

    Joins the cluster of RAY_ADDRESS where that is set; there are never more actors than processors. Raises UsageError
    where Ray is not installed and ToolkitError when an actor dies; an error of a task is raised as it was.
    """
    ray = _import_ray()
    joined = ray.is_initialized()
    if not joined:
        ray.init(log_to_driver=False, logging_level="error", include_dashboard=False, num_cpus=_cpus(workers))
    workers = min(workers, int(ray.cluster_resources()["CPU"]))
    actors = [ray.remote(num_cpus=1)(_Worker).remote(work) for _ in range(workers)]
    turns = itertools.cycle(actors)
    try:
        yield from in_order(tasks, lambda task: next(turns).run.remote(task), ray.get, workers)
    except ray.exceptions.RayTaskError as fault:
        raise fault.cause from fault
    except ray.exceptions.RayActorError as fault:
        raise ToolkitError("a Ray worker died", "was it out of memory? try smaller `rows_per_shard`") from fault
    finally:
        for actor in actors:
            ray.kill(actor)
        if not joined:
            ray.shutdown()


class _Worker:
    def __init__(self, work: Callable[[Any], Any]) -> None:
        self._work = work

    def run(self, task: Any) -> Any:
        return self._work(task)


def _cpus(workers: int) -> int | None:
    """Ray must not be passed a number of processors when it joins a running cluster."""
    return None if "RAY_ADDRESS" in os.environ else workers


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as fault:
        raise UsageError("`driver=ray`: Ray is not installed", "in the checkout: pip install '.[ray]'") from fault
    return ray
