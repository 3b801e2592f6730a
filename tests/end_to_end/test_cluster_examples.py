"""The examples for clusters and for make: what they submit and run, and a real Slurm where one is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT, RunCli

STAGES = ("records", "masked", "labelled", "tokens", "packed")


def with_our_command() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def test_the_submit_script_makes_each_stage_wait_for_the_one_before(tmp_path: Path) -> None:
    """A program called sbatch notes its arguments, and numbers jobs as Slurm does with --parsable."""
    noting = tmp_path / "sbatch"
    noting.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/noted\nwc -l < {tmp_path}/noted\n')
    noting.chmod(0o755)
    script = [ROOT / "examples/slurm/submit.sh", "in.jsonl", "tokenizer", tmp_path / "out", "3"]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(list(map(str, script)), env=environment, capture_output=True, text=True, check=True)
    noted = (tmp_path / "noted").read_text().splitlines()
    assert [re.findall(r"afterok:(\d+)", line) for line in noted] == [[], ["1"], ["2"], ["3"], ["4"]]
    assert all("--array=0-2" in line and "stage.sbatch" in line for line in noted)
    assert "kolibri-sft status" in done.stdout


@pytest.mark.slow
def test_slurm_runs_the_sample_pipeline(run_cli: RunCli, tmp_path: Path) -> None:
    if shutil.which("slurmctld") is None or subprocess.run(["sinfo"], capture_output=True).returncode:
        pytest.skip("no Slurm runs here: apt-get install slurm-wlm munge, and start a node")
    samples = ROOT / "sample_data"
    script = [
        ROOT / "examples/slurm/submit.sh",
        samples / "letters.jsonl",
        samples / "tokenizer",
        tmp_path / "out",
        "3",
    ]
    environment = {**with_our_command(), "SBATCH_OPTIONS": "--cpus-per-task=1 --mem-per-cpu=0"}
    subprocess.run(list(map(str, script)), env=environment, check=True)
    folders = [tmp_path / "out" / stage for stage in STAGES]
    until = time.monotonic() + 300
    while run_cli("status", *folders).returncode and time.monotonic() < until:
        time.sleep(2)
    assert run_cli("status", *folders).returncode == 0


@pytest.mark.slow
def test_make_packs_a_folder_of_data_and_does_nothing_the_second_time(tmp_path: Path) -> None:
    samples = ROOT / "sample_data"
    (tmp_path / "data").mkdir()
    shutil.copy(samples / "letters.jsonl", tmp_path / "data")
    command = ["make", "-f", str(ROOT / "examples/make/Makefile"), f"TOKENIZER={samples / 'tokenizer'}"]
    subprocess.run(command, cwd=tmp_path, env=with_our_command(), check=True, capture_output=True)
    assert (tmp_path / "out/packed/manifest.json").is_file()
    again = subprocess.run(command, cwd=tmp_path, env=with_our_command(), check=True, capture_output=True, text=True)
    assert "Nothing to be done" in again.stdout
