"""The share of a process in an array job, and what becomes of the tasks' output."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from sft_toolkit.cli.array_job import array_task_of, part_of
from sft_toolkit.errors import UsageError
from sft_toolkit.running.roster import ArrayTask
from tests.conftest import RunCli


def write_records(path: Path, records: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def one_line_error(done: subprocess.CompletedProcess[bytes], code: int) -> str:
    assert done.returncode == code and done.stderr.count(b"\n") == 1, done.stderr
    return done.stderr.decode()


def slurm(task: int, tasks: list[int], step: int = 1) -> dict[str, str]:
    """What Slurm gives a task of `sbatch --array=TASKS`."""
    return {
        "SLURM_ARRAY_TASK_ID": str(task),
        "SLURM_ARRAY_TASK_COUNT": str(len(tasks)),
        "SLURM_ARRAY_TASK_MIN": str(min(tasks)),
        "SLURM_ARRAY_TASK_MAX": str(max(tasks)),
        "SLURM_ARRAY_TASK_STEP": str(step),
        "SLURM_ARRAY_JOB_ID": "77",
    }


OURS = {"KOLIBRI_SFT_SHARD_INDEX": "1", "KOLIBRI_SFT_SHARD_COUNT": "4"}


@pytest.mark.parametrize(
    ("shard", "environment", "part", "task"),
    [
        ("auto", {}, (0, 1), None),
        ("2/3", slurm(0, [0, 1, 2, 3, 4]), (2, 3), None),
        ("none", slurm(0, [0, 1, 2, 3, 4]), (0, 1), None),
        ("none", OURS, (0, 1), None),
        ("auto", {**OURS, **slurm(0, [0, 1])}, (1, 4), None),
        ("auto", slurm(3, [1, 2, 3]), (0, 1), ArrayTask(3, 1, 1, 3, "77")),
        ("auto", slurm(14, [10, 12, 14], step=2), (0, 1), ArrayTask(14, 10, 2, 3, "77")),
        ("auto", slurm(4, [2, 4]), (0, 1), ArrayTask(4, 2, 1, 3, "77")),
    ],
)
def test_the_flag_goes_before_our_variables_and_these_before_slurms(
    shard: str, environment: dict[str, str], part: tuple[int, int], task: ArrayTask | None
) -> None:
    assert part_of(shard, environment) == part
    assert array_task_of(shard, environment) == task


@pytest.mark.parametrize("shard", ["", "3", "3/3", "0/0", "-1/2", "a/2", "²/4", "1/2/3", "all"])
def test_a_shard_that_is_no_part_is_refused(shard: str) -> None:
    with pytest.raises(UsageError, match=f"--shard {shard}: not a part I of N"):
        part_of(shard, {})


@pytest.mark.parametrize(
    "environment",
    [
        {"KOLIBRI_SFT_SHARD_COUNT": "two", "KOLIBRI_SFT_SHARD_INDEX": "0"},
        {"KOLIBRI_SFT_SHARD_COUNT": "2", "KOLIBRI_SFT_SHARD_INDEX": "5"},
        {"KOLIBRI_SFT_SHARD_COUNT": "2"},
        {"KOLIBRI_SFT_SHARD_INDEX": "0"},
        {"SLURM_ARRAY_TASK_COUNT": "3"},
    ],
    ids=["no number", "past the end", "no index", "no count", "no task"],
)
def test_an_environment_that_names_no_part_is_refused_not_taken_for_a_part_without_work(
    environment: dict[str, str],
) -> None:
    with pytest.raises(UsageError, match="not a part I of N"):
        array_task_of("auto", environment)
        part_of("auto", environment)


def test_a_part_does_not_wipe_out_the_others(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("convert", "-o", tmp_path, "--shard", "0/2", "--force", stdin=b"{}")
    assert done.returncode == 2 and b"each part would wipe out the others" in done.stderr
    source = write_records(tmp_path / "in.jsonl", [record(0)])
    done = run_cli("convert", source, "-o", tmp_path / "o", "--force", environment=slurm(0, [0, 1]))
    assert "--shard none where each task has its own output" in one_line_error(done, 2)


def record(number: int) -> dict[str, object]:
    return {"id": f"r{number}", "messages": [{"role": "user", "content": "x" * number}]}


@pytest.mark.parametrize("environment", [slurm(3, list(range(8))), slurm(3, [3]), slurm(3, [1, 3, 9])])
def test_each_task_of_an_array_over_data_sets_writes_the_whole_of_its_own(
    environment: dict[str, str], run_cli: RunCli, tmp_path: Path
) -> None:
    source = write_records(tmp_path / "mine_3.jsonl", [record(number) for number in range(6)])
    run = ("convert", source, "--rows-per-shard", "2", "--workers", "1")
    done = run_cli(*run, "-o", tmp_path / "mine_3", environment=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "mine_3/manifest.json").read_text())["counters"]["out"] == 6
    again = run_cli(*run, "-o", tmp_path / "mine_3", environment=environment)
    assert again.returncode == 0 and b"finished already" in again.stderr


def test_status_and_every_refusal_of_an_unfinished_array_say_what_to_submit_and_never_force(
    run_cli: RunCli, tmp_path: Path
) -> None:
    source = write_records(tmp_path / "in.jsonl", [record(number) for number in range(10)])
    run = ("convert", source, "--rows-per-shard", "2", "--workers", "1", "-o", tmp_path / "o")
    for part in ("0/5", "2/5", "3/5"):
        assert run_cli(*run, "--shard", part).returncode == 0
    state = run_cli("status", tmp_path / "o")
    assert state.returncode == 75
    assert b"3 of 5 of blocks done, missing: 1,4" in state.stdout
    shown = json.loads(run_cli("status", "--json", tmp_path / "o").stdout)
    assert shown["missing"] == [1, 4] and [task["state"] for task in shown["tasks"]] == ["ended"] * 3
    refused = one_line_error(run_cli(*run), 2)
    assert "3 finished shards of an array job; --resume continues it" in refused and "--force" not in refused
    other = one_line_error(run_cli(*run, "--duplicates", "number", "--resume"), 2)
    assert "--duplicates was error, is number now" in other and "--force" not in other
    for part in ("1/5", "4/5"):
        assert run_cli(*run, "--shard", part).returncode == 0
    whole = run_cli("status", tmp_path / "o")
    assert whole.returncode == 0 and b"whole, 5 shards" in whole.stdout
