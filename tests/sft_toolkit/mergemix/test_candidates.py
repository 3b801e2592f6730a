"""Mixtures: drawing them, reading them, refusing what is none."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sft_toolkit.errors import ToolkitError
from sft_toolkit.mergemix.candidates import STEP, read_candidates, sample_candidates


@given(st.integers(2, 30), st.integers(1, 20), st.integers(0, 2**63), st.floats(0.1, 50))
@settings(max_examples=50, deadline=None)
def test_drawn_mixtures_are_different_points_of_the_simplex(clusters: int, count: int, seed: int, by: float) -> None:
    names = [f"c{place}" for place in range(clusters)]
    mixtures = sample_candidates(names, count, seed, by)
    points = [tuple(mixture.weights.values()) for mixture in mixtures]
    assert len(set(points)) == count == len({mixture.id for mixture in mixtures})
    for point in points:
        assert sum(point) == 1 and min(point) >= 0
        assert all((weight * STEP).denominator == 1 for weight in point)


def test_the_seed_alone_decides() -> None:
    names = ["code", "law", "math"]
    assert sample_candidates(names, 5, 1) == sample_candidates(names, 5, 1)
    assert sample_candidates(names, 5, 1) != sample_candidates(names, 5, 2)
    assert sample_candidates(names, 5, 1) == sample_candidates(names, 9, 1)[:5]


def test_draws_gather_around_the_base() -> None:
    base = {"a": Fraction(7, 10), "b": Fraction(2, 10), "c": Fraction(1, 10)}
    far, near = (
        np.array(
            [
                [float(weight) for weight in mixture.weights.values()]
                for mixture in sample_candidates("abc", 400, 0, by, base)
            ]
        )
        for by in (1, 100)
    )
    centre = [0.7, 0.2, 0.1]
    assert np.allclose(far.mean(axis=0), centre, atol=0.05) and np.allclose(near.mean(axis=0), centre, atol=0.01)
    assert np.abs(near - centre).max() < 0.2 < np.abs(far - centre).max()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], 3, 0), "two clusters or more"),
        ((["a", "b"], 3, 0, 0.0), "above zero"),
        ((["a", "b"], 3, 0, 1.0, {"a": Fraction(1)}), "above zero"),
        ((["a", "b"], 200, 0, 1e9), "different mixtures cannot be drawn"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ToolkitError, match=message):
        sample_candidates(*arguments)


def write(path: Path, *entries: Any) -> Path:
    path.write_text("\n".join(entry if isinstance(entry, str) else json.dumps(entry) for entry in entries))
    return path


def test_a_written_mixture_is_read_exactly(tmp_path: Path) -> None:
    mixtures = sample_candidates(["code", "math"], 20, 5)
    path = write(tmp_path / "m.jsonl", *(mixture.to_json() for mixture in mixtures))
    assert read_candidates(path, ["code", "math"]) == mixtures


def test_a_cluster_that_is_not_named_has_no_weight(tmp_path: Path) -> None:
    path = write(tmp_path / "m.jsonl", {"id": "x", "weights": {"math": 1}}, "")
    (mixture,) = read_candidates(path, ["code", "math"])
    assert mixture.weights == {"code": 0, "math": 1}


def test_thirds_may_miss_one_by_a_millionth(tmp_path: Path) -> None:
    thirds = dict.fromkeys("abc", 0.333333)
    (mixture,) = read_candidates(write(tmp_path / "m.jsonl", {"id": "x", "weights": thirds}))
    assert sum(mixture.weights.values()) == Fraction("0.999999")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"id": "x", "weights": {"a": 0.5, "b": 0.4}}, "weights of mixture x sum to 0.9"),
        ({"id": "x", "weights": {"a": 1.5, "b": -0.5}}, "gives b a negative weight"),
        ({"id": "x", "weights": {"a": 0.5, "z": 0.5}}, "names z, which is no cluster"),
        ({"id": "x", "weights": {"a": "much"}}, "weight much is not a number"),
        ({"id": "x", "weights": {"a": None}}, "weight None is not a number"),
        ({"id": "x"}, "has no weights"),
        ({"id": "../x", "weights": {"a": 1}}, "no id that can name a folder"),
        ({"id": "", "weights": {"a": 1}}, "no id that can name a folder"),
        ({"weights": {"a": 1}}, "no id that can name a folder"),
        ([1], "no id that can name a folder"),
        ("{", "not JSON"),
        ('{"id": "x", "id": "y", "weights": {"a": 1}}', "duplicate key id"),
        ("", "no mixtures"),
    ],
)
def test_what_is_no_mixture_is_refused_with_its_place(tmp_path: Path, entry: Any, message: str) -> None:
    path = write(tmp_path / "m.jsonl", entry)
    with pytest.raises(ToolkitError, match=message):
        read_candidates(path, ["a", "b"])


def test_two_mixtures_of_one_name_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "m.jsonl", *[{"id": "x", "weights": {"a": 1}}] * 2)
    with pytest.raises(ToolkitError, match="two mixtures are called x"):
        read_candidates(path)
