"""Drivers decide where work runs and cannot change what comes out, nor in which order."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
import ray

import sft_toolkit
from sft_toolkit.errors import RecordError, ToolkitError
from sft_toolkit.running.drivers import DRIVERS, run_ordered
from sft_toolkit.running.drivers import ray as ray_driver
from sft_toolkit.running.options import RunOptions
from sft_toolkit.stages.pack import two_passes
from tests.token_shards import random_documents, write_token_folder

VERSION = re.escape(sft_toolkit.__version__)


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


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A Ray cluster of this module's own, which runs join: to start one for each test takes seconds."""
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_tasks(driver: str, workers: int) -> None:
    results = list(run_ordered(driver, iter(range(20)), squared_slowly_when_even, workers))
    assert results == [number * number for number in range(20)]


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("driver", DRIVERS)
def test_the_first_error_in_task_order_is_raised_as_it_was(driver: str) -> None:
    done = []
    with pytest.raises(RecordError) as caught:
        done.extend(run_ordered(driver, iter(range(20)), refuse_seven, 2))
    assert (caught.value.reason, caught.value.detail) == ("seven", "record 7: no")


class Numbered:
    def __init__(self, index: int) -> None:
        self.index = index
        self.values = np.zeros(2)


def die_once(task: Numbered, folder: Path) -> int:
    """The first run of block 3 ends its process; arrays of a task may be written to, as in one process."""
    task.values[0] = 1
    mark = folder / "died"
    if task.index == 3 and not mark.exists():
        mark.touch()
        os._exit(9)
    return task.index


def die_always(task: Numbered) -> int:
    if task.index == 3:
        os._exit(9)
    return task.index


@pytest.mark.usefixtures("cluster")
def test_a_block_whose_ray_worker_died_is_run_again(tmp_path: Path) -> None:
    work = partial(die_once, folder=tmp_path)
    assert list(run_ordered("ray", map(Numbered, range(8)), work, 2)) == list(range(8))
    assert (tmp_path / "died").exists()


@pytest.mark.usefixtures("cluster")
def test_a_block_that_always_loses_its_ray_worker_ends_the_run_by_its_name() -> None:
    with pytest.raises(ToolkitError, match="block 3: lost its Ray worker or node 4 times") as caught:
        list(run_ordered("ray", map(Numbered, range(8)), die_always, 2))
    assert "`resume=True`" in caught.value.hint


@pytest.mark.usefixtures("cluster")
def test_another_version_of_the_package_on_a_worker_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sft_toolkit, "__version__", "9.9")
    with pytest.raises(ToolkitError, match=rf"has kolibri-sft {VERSION}, this is 9\.9"):
        list(run_ordered("ray", iter(range(2)), process_id, 1))


@pytest.mark.usefixtures("cluster")
def test_pack_under_ray_writes_the_bytes_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_token_folder(tmp_path / "tokens", random_documents(200))
    monkeypatch.setattr(two_passes, "_WORTH_A_POOL", 0)  # the first pass, too, goes to the workers
    for driver in DRIVERS:
        run = RunOptions([str(tmp_path / "tokens")], output=str(tmp_path / driver), rows_per_shard=4, driver=driver)
        two_passes.run_pack(two_passes.PackOptions(capacity=1024), replace(run, workers=1))
    shards = [{path.name: path.read_bytes() for path in (tmp_path / one).glob("part-*.arrow")} for one in DRIVERS]
    assert len(shards[0]) > 2 and shards[0] == shards[1]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", "no Ray cluster at 127.0.0.1:1: Connection refused"),
        ("head", "`ray_address` head: not HOST:PORT"),
    ],
)
def test_a_cluster_that_is_not_there_is_an_error_at_once(address: str, message: str) -> None:
    with pytest.raises(ToolkitError, match=re.escape(message)):
        ray_driver._require_answer(address)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"], ids=["none", "another's"])
def test_what_listens_and_is_no_ray_is_an_error_within_twenty_seconds(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ray_driver._SECONDS_TO_CONNECT + ray_driver._SECONDS_TO_ANSWER < 20
    monkeypatch.setattr(ray_driver, "_SECONDS_TO_ANSWER", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            if answer:
                connection.sendall(answer)
            connections.append(connection)

        connections: list[socket.socket] = []
        threading.Thread(target=serve, daemon=True).start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ToolkitError, match=f"no Ray cluster at {address}: (no answer|what listens there)"):
            ray_driver._require_answer(address)


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
