"""`kolibri-sft plan` as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from sft_toolkit.packers import window_plan
from sft_toolkit.running.options import RunOptions
from sft_toolkit.stages.pack.two_passes import PackOptions, run_pack
from tests.conftest import RunCli, cli_command
from tests.token_shards import random_documents, write_token_folder

ORDERS = ["random", "sorted-buffer", "within-step", "window, undealt", "window"]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    write_token_folder(folder / "T", random_documents(6000))
    run_pack(PackOptions(capacity=1024), RunOptions([str(folder / "T")], output=str(folder / "P"), workers=1))
    return folder / "P"


def words(output: bytes) -> list[str]:
    return [" ".join(line.split()) for line in output.decode().splitlines()]


def test_orders_are_compared_in_a_table_on_stdout(run_cli: RunCli, packed: Path) -> None:
    done = run_cli("plan", packed, "--ranks", "4", "--microbatches", "2", "--buffer", "16")
    assert (done.returncode, done.stderr) == (0, b"")
    lines = words(done.stdout)
    assert "order efficiency tokens/s deff mix distance" in lines
    assert [order for order in ORDERS if any(line.startswith(order) for line in lines)] == ORDERS
    assert any(line.startswith("tools ") and line.count("%") == 5 for line in lines)


def test_json_holds_the_figures_of_each_order(run_cli: RunCli, packed: Path) -> None:
    done = run_cli("plan", packed, "--ranks", "4", "--microbatches", "2", "--buffer", "16", "--json")
    found = json.loads(done.stdout)
    assert [figures["order"] for figures in found["orders"]] == ORDERS
    random, buffered, *_, dealt = found["orders"]
    assert random["speed_up"] == 1
    assert random["efficiency"] < buffered["efficiency"] < dealt["efficiency"]
    assert found["steps"] * 8 - found["filler"] == found["sequences"]
    assert sum(found["mix"].values()) == pytest.approx(1)
    assert all(sum(figures["step_mix"].values()) == pytest.approx(1) for figures in found["orders"])


def test_the_efficiency_is_that_of_a_simulation_by_hand(run_cli: RunCli, packed: Path) -> None:
    done = run_cli("plan", packed, "--ranks", "4", "--microbatches", "2", "--attention-share", "1", "--json")
    index = pq.read_table(packed / "index.parquet").to_pydict()
    costs = np.array([*index["cost"], 0])
    microbatches = costs[window_plan(costs[:-1], 4, 2).epoch(0)].reshape(-1, 4)
    used = microbatches[microbatches.max(axis=1) > 0]
    efficiency = (used.mean(axis=1) / used.max(axis=1)).mean()
    assert json.loads(done.stdout)["orders"][-1]["efficiency"] == pytest.approx(efficiency)


def test_fewer_sequences_than_one_step_takes_are_told_so(run_cli: RunCli, packed: Path) -> None:
    lines = words(run_cli("plan", packed, "--ranks", "512").stdout)
    assert any("fewer sequences than one step takes" in line for line in lines)
    assert any(line.startswith("random") and line.endswith("- -") for line in lines)


def test_a_folder_that_is_not_packed_is_refused(run_cli: RunCli, packed: Path, tmp_path: Path) -> None:
    done = run_cli("plan", packed.parent / "T")
    assert done.returncode == 1
    assert "holds tokens shards, not packed shards; packed shards come from kolibri-sft pack" in done.stderr.decode()
    assert run_cli("plan", tmp_path).returncode == 1


def test_a_share_outside_its_range_is_wrong_use(run_cli: RunCli, packed: Path) -> None:
    done = run_cli("plan", packed, "--attention-share", "1.5")
    assert done.returncode == 2
    assert done.stderr.decode().strip() == "error: --attention-share 1.5: not a share; give a number from 0 to 1"


def test_a_reader_that_is_gone_ends_it_without_a_word(packed: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    arguments = cli_command("plan", packed, "--ranks", "4")
    done = subprocess.run(arguments, stdout=write, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
