"""Greedy soups: which members stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sft_toolkit.errors import ToolkitError
from sft_toolkit.souping.greedy import greedy_soup
from sft_toolkit.souping.writing import OutputOptions
from tests.sft_toolkit.souping.checkpoints import bfloat16, read_patterns

WriteCheckpoint = Callable[..., Path]


def parameter(model: Path) -> float:
    (bits,) = read_patterns(model)["w"]
    return float((bits.astype("uint32") << 16).view("float32"))


@pytest.fixture
def runs(write_checkpoint: WriteCheckpoint) -> list[Path]:
    """Models of one parameter. For the target 2: alone best c (1.5), then a (3), then b (0.5), then d (-4)."""
    return [
        write_checkpoint(name, {"w": bfloat16(number)}) for name, number in zip("abcd", (3, 0.5, 1.5, -4), strict=True)
    ]


def test_members_are_tried_in_order_of_score_and_stay_if_they_improve(runs: list[Path], tmp_path: Path) -> None:
    """c 1.5; c+a (1.5+3)/2 = 2.25 is closer, stays; c+a+b 5/3 is not; c+a+d 1/6 is not."""
    recipe = greedy_soup(runs, tmp_path / "out", OutputOptions(), lambda model: -abs(parameter(model) - 2))
    names = [("".join(Path(path).name for path in step["members"]), step["kept"]) for step in recipe["greedy"]]
    assert names == [
        ("c", True),
        ("a", False),
        ("b", False),
        ("d", False),
        ("ca", True),
        ("cab", False),
        ("cad", False),
    ]
    assert parameter(tmp_path / "out") == 2.25
    assert [entry["path"] for entry in recipe["inputs"]] == [str(runs[0]), str(runs[2])]


def test_a_loss_is_made_smaller(runs: list[Path], tmp_path: Path) -> None:
    recipe = greedy_soup(
        runs, tmp_path / "out", OutputOptions(), lambda model: abs(parameter(model) - 2), lower_is_better=True
    )
    assert parameter(tmp_path / "out") == 2.25
    assert recipe["greedy"][0]["score"] == 0.5


def test_a_soup_that_never_improves_is_the_best_run_alone(runs: list[Path], tmp_path: Path) -> None:
    greedy_soup(runs, tmp_path / "out", OutputOptions(), parameter)
    assert parameter(tmp_path / "out") == 3


def test_an_equal_score_does_not_improve(write_checkpoint: WriteCheckpoint, tmp_path: Path) -> None:
    runs = [write_checkpoint(name, {"w": bfloat16(1)}) for name in "ab"]
    recipe = greedy_soup(runs, tmp_path / "out", OutputOptions(), lambda model: 1.0)
    assert [step["kept"] for step in recipe["greedy"]] == [True, False, False]


def test_nothing_is_left_of_trials_when_the_evaluation_fails(runs: list[Path], tmp_path: Path) -> None:
    def fail_on_trials(model: Path) -> float:
        if model not in runs:
            raise ToolkitError("the benchmark is down")
        return 1.0

    with pytest.raises(ToolkitError, match="the benchmark is down"):
        greedy_soup(runs, tmp_path / "out", OutputOptions(), fail_on_trials)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c", "d"]


def test_checkpoints_that_cannot_be_averaged_are_refused_before_anything_is_evaluated(
    write_checkpoint: WriteCheckpoint, tmp_path: Path
) -> None:
    runs = [write_checkpoint("a", {"w": bfloat16(1)}), write_checkpoint("b", {"v": bfloat16(1)})]
    with pytest.raises(ToolkitError, match="tensor v"):
        greedy_soup(runs, tmp_path / "out", OutputOptions(), lambda model: pytest.fail("evaluated"))
