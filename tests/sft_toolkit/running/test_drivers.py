"""Drivers decide where work runs and cannot change what comes out, nor in which order."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import psutil
import pytest

from sft_toolkit.errors import RecordError, ToolkitError
from sft_toolkit.running.drivers import DRIVERS, run_ordered


def squared_slowly_when_even(number: int) -> int:
    time.sleep(0.02 * (number % 2 == 0))
    return number * number


def refuse_seven(number: int) -> int:
    if number >= 7:
        raise RecordError("seven", f"record {number}: no")
    return number


def die_at_three(number: int) -> int:
    if number == 3:
        os._exit(9)
    return number


def process_id(number: int) -> int:
    return os.getpid()


def counted(limit: int, taken: list[int]) -> Iterator[int]:
    for number in range(limit):
        taken.append(number)
        yield number


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_tasks(driver: str, workers: int) -> None:
    results = list(run_ordered(driver, iter(range(20)), squared_slowly_when_even, workers))
    assert results == [number * number for number in range(20)]


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_first_error_in_task_order_is_raised_as_it_was(driver: str) -> None:
    done = []
    with pytest.raises(RecordError) as caught:
        done.extend(run_ordered(driver, iter(range(20)), refuse_seven, 2))
    assert (caught.value.reason, caught.value.detail) == ("seven", "record 7: no")


def test_few_tasks_are_taken_ahead() -> None:
    taken: list[int] = []
    results = run_ordered("local", counted(1000, taken), squared_slowly_when_even, 2)
    for _ in range(10):
        next(results)
    assert len(taken) <= 10 + 2 * 2 + 2
    results.close()  # type: ignore[attr-defined]


def test_a_dead_worker_is_an_error_with_advice() -> None:
    with pytest.raises(ToolkitError, match="a worker process died"):
        list(run_ordered("local", iter(range(10)), die_at_three, 2))


def test_no_worker_outlives_the_run() -> None:
    workers = set(run_ordered("local", iter(range(10)), process_id, 2))
    assert os.getpid() not in workers
    assert not any(psutil.pid_exists(worker) for worker in workers)


def test_one_task_runs_in_this_process() -> None:
    assert list(run_ordered("local", iter([1]), process_id, 8)) == [os.getpid()]
