"""One process or many: the sample pipeline, pack included, gives the same bytes wherever its blocks run."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.conftest import RunCli, cli_command

STAGES = ("records", "masked", "labelled", "tokens", "packed")
Run = Callable[[Path, list[str | Path]], None]
"""Brings one stage's output to its end: the folder, and the command without it."""


@pytest.fixture(scope="module")
def slice_of_samples(sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = (sample_data / "letters.jsonl").read_text().splitlines(keepends=True)[:40]
    source = tmp_path_factory.mktemp("samples") / "letters.jsonl"
    source.write_text("".join(lines))
    return source


def pipeline(source: Path, tokenizer: Path, out: Path, run: Run) -> dict[str, str]:
    """Every stage by `run`; the hashes of all shards."""
    few = ["--rows-per-shard", "4"]
    with_tokenizer = ["--tokenizer", tokenizer]
    run(out / "records", ["convert", source, *few])
    run(out / "masked", ["mask", out / "records", *few])
    run(out / "labelled", ["effort", "label", out / "masked", *with_tokenizer, *few])
    run(out / "tokens", ["render", out / "labelled", *with_tokenizer, *few])
    run(out / "packed", ["pack", out / "tokens", "--capacity", "4096", "--rows-per-shard", "1"])
    shards = [path for stage in STAGES for path in sorted((out / stage).glob("part-*.arrow"))]
    return {f"{path.parent.name}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in shards}


@pytest.fixture(scope="module")
def one_process(
    slice_of_samples: Path, sample_data: Path, run_cli: RunCli, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    return pipeline(
        slice_of_samples, sample_data / "tokenizer", tmp_path_factory.mktemp("one"), locally(run_cli, workers=1)
    )


def locally(run_cli: RunCli, workers: int) -> Run:
    def run(output: Path, command: list[str | Path]) -> None:
        done = run_cli(*command, "-o", output, "--workers", str(workers))
        assert done.returncode == 0, done.stderr

    return run


@pytest.mark.slow
def test_two_workers(
    slice_of_samples: Path, sample_data: Path, run_cli: RunCli, one_process: dict[str, str], tmp_path: Path
) -> None:
    assert len(one_process) > 4 * 9
    found = pipeline(slice_of_samples, sample_data / "tokenizer", tmp_path, locally(run_cli, workers=2))
    assert found == one_process


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [3, 7])
def test_an_array_in_shuffled_order_with_two_tasks_killed_and_retried_by_list(
    tasks: int, slice_of_samples: Path, sample_data: Path, run_cli: RunCli, one_process: dict[str, str], tmp_path: Path
) -> None:
    draw = random.Random(tasks)

    def start(command: list[str | Path], number: int, numbers: list[int]) -> subprocess.Popen[bytes]:
        array = {"ID": number, "COUNT": len(numbers), "MIN": min(numbers), "MAX": max(numbers), "STEP": 1}
        environment = {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in array.items()}
        return subprocess.Popen(
            cli_command(*command), env={**os.environ, **environment}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )

    def run(output: Path, command: list[str | Path]) -> None:
        command = [*command, "-o", output, "--workers", "1"]
        numbers = list(range(tasks))
        killed = set(draw.sample(numbers, 2))
        running = {number: start(command, number, numbers) for number in draw.sample(numbers, tasks)}
        time.sleep(draw.uniform(0.5, 3.0))
        for number in killed:
            running[number].kill()
        for number, process in running.items():
            _, errors = process.communicate(timeout=240)
            assert process.returncode == 0 or number in killed, errors
        state = run_cli("status", output, "--json")
        listed = json.loads(state.stdout)["array"]
        assert (state.returncode == 75) == bool(listed)
        left = sorted(int(number) for number in listed.replace("-", ",").split(",") if number)
        for number in left:
            process = start(command, number, left)
            assert process.wait(timeout=240) == 0, process.communicate()[1]
        assert run_cli("status", output).returncode == 0

    assert pipeline(slice_of_samples, sample_data / "tokenizer", tmp_path, run) == one_process


@pytest.fixture
def two_nodes() -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a Ray cluster of two nodes, and what removes the second."""
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = cluster.add_node(num_cpus=1)
    yield cluster.address, lambda: cluster.remove_node(second)
    cluster.shutdown()


@pytest.mark.slow
def test_a_ray_cluster_that_loses_a_worker_and_then_a_node_in_the_middle_of_one_command(
    slice_of_samples: Path,
    sample_data: Path,
    one_process: dict[str, str],
    two_nodes: tuple[str, Callable[[], None]],
    tmp_path: Path,
) -> None:
    address, remove_node = two_nodes
    lost: list[str] = []

    def lose(output: Path) -> None:
        wait_for_shards(output, 1)
        worker = next(one for one in psutil.process_iter(["name"]) if one.info["name"].startswith("ray::"))
        worker.kill()
        wait_for_shards(output, 2)
        remove_node()
        lost.append("manifest" if (output / "manifest.json").exists() else "in the middle")

    def run(output: Path, command: list[str | Path]) -> None:
        losing = threading.Thread(target=lose, args=(output,)) if output.name == "tokens" else None
        if losing is not None:
            losing.start()
        ray = ["--driver", "ray", "--ray-address", address]
        done = subprocess.run(cli_command(*command, "-o", output, *ray), capture_output=True, timeout=240)
        assert done.returncode == 0, done.stderr
        if losing is not None:
            losing.join()

    assert pipeline(slice_of_samples, sample_data / "tokenizer", tmp_path, run) == one_process
    assert len(lost) == 1


def wait_for_shards(output: Path, count: int) -> None:
    while not (output / "manifest.json").exists() and len(list(output.glob("part-*.arrow"))) < count:
        time.sleep(0.005)
