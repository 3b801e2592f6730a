"""Learning rates by hand, and what every schedule must keep to."""

from __future__ import annotations

import math
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.choices import Schedule
from sft_toolkit.training.schedule import rate_share


def shares(schedule: str, steps: int, warmup: float = 0.0, decay: float = 0.2) -> list[float]:
    return [rate_share(schedule, step, steps, warmup, decay) for step in range(steps)]


def test_the_rate_rises_over_the_warm_up_and_a_line_falls_from_there() -> None:
    assert shares("linear", 10, warmup=0.2) == [0.5, 1, 1, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125]


def test_half_a_cosine_is_halved_in_the_middle() -> None:
    assert shares("cosine", 4) == pytest.approx([1, (1 + math.sqrt(0.5)) / 2, 0.5, (1 - math.sqrt(0.5)) / 2])


def test_wsd_stays_and_falls_over_the_last_part_alone() -> None:
    assert shares("wsd", 10, warmup=0.2, decay=0.4) == [0.5, 1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25]
    assert shares("wsd", 3, decay=0.0) == [1, 1, 1]


def test_what_falls_falls_to_the_floor() -> None:
    assert [rate_share("linear", step, 4, 0.0, 0.2, floor=0.2) for step in range(4)] == pytest.approx(
        [1, 0.8, 0.6, 0.4]
    )
    assert rate_share("cosine", 999, 1000, 0.0, 0.2, floor=0.1) == pytest.approx(0.1, abs=1e-4)
    assert [rate_share("wsd", step, 4, 0.25, 0.5, floor=0.5) for step in range(4)] == [1, 1, 1, 0.75]


@given(
    schedule=st.sampled_from(get_args(Schedule)),
    steps=st.integers(1, 400),
    warmup=st.floats(0, 0.5),
    decay=st.floats(0, 0.5),
)
def test_every_step_learns_and_none_above_the_peak(schedule: str, steps: int, warmup: float, decay: float) -> None:
    found = shares(schedule, steps, warmup, decay)
    assert all(0 < share <= 1 for share in found)
    peak = found.index(max(found))
    assert found[peak:] == sorted(found[peak:], reverse=True)
