"""The part of an array job that a process does."""

from __future__ import annotations

from pathlib import Path

import pytest

from sft_toolkit.cli.array_job import part_of
from sft_toolkit.errors import UsageError
from tests.conftest import RunCli


def slurm(task: str, count: str, first: str = "0", step: str = "1") -> dict[str, str]:
    names = ("ID", "COUNT", "MIN", "STEP")
    return {f"SLURM_ARRAY_TASK_{name}": value for name, value in zip(names, (task, count, first, step), strict=True)}


@pytest.mark.parametrize(
    ("shard", "environment", "part"),
    [
        (None, {}, (0, 1)),
        ("2/3", slurm("0", "5"), (2, 3)),
        (None, slurm("3", "3", first="1"), (2, 3)),
        (None, slurm("14", "3", first="10", step="2"), (2, 3)),
        (None, {"KOLIBRI_SFT_SHARD_INDEX": "1", "KOLIBRI_SFT_SHARD_COUNT": "4", **slurm("0", "5")}, (1, 4)),
    ],
)
def test_the_flag_goes_before_our_variables_and_these_before_slurms(
    shard: str | None, environment: dict[str, str], part: tuple[int, int]
) -> None:
    assert part_of(shard, environment) == part


@pytest.mark.parametrize("shard", ["", "3", "3/3", "0/0", "-1/2", "a/2", "²/4", "1/2/3"])
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
        slurm("7", "2", first="3"),
        slurm("13", "3", first="10", step="2"),
    ],
    ids=["no number", "past the end", "no index", "no count", "no task", "gaps in the array", "between two steps"],
)
def test_an_environment_that_names_no_part_is_refused_not_taken_for_a_part_without_work(
    environment: dict[str, str],
) -> None:
    with pytest.raises(UsageError, match="not a part I of N"):
        part_of(None, environment)


def test_a_part_does_not_wipe_out_the_others(run_cli: RunCli, tmp_path: Path) -> None:
    done = run_cli("convert", "-o", tmp_path, "--shard", "0/2", "--force", stdin=b"{}")
    assert done.returncode == 2 and b"each part would wipe out the others" in done.stderr
