"""Whether a model obeys its effort: medians with intervals, the order of levels, ratios; worked by hand."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from sft_toolkit.labelers.effort_obedience import Interval, median, obedience


@pytest.mark.parametrize(("n", "k"), [(6, 1), (8, 1), (9, 2), (10, 2), (20, 6), (100, 40)])
def test_a_median_lies_between_the_order_statistics_of_the_sign_test(n: int, k: int) -> None:
    """k is the largest with P(Binomial(n, 1/2) < k) <= .025, as tables of the sign test have it."""
    assert sum(comb(n, i) for i in range(k)) / 2**n <= 0.025 < sum(comb(n, i) for i in range(k + 1)) / 2**n
    found = median(np.arange(1, n + 1)[::-1])
    assert found == ((n + 1) / 2, Interval(k, n + 1 - k))


def test_five_values_are_too_few_for_an_interval() -> None:
    assert median([5, 1, 2, 4, 3]) == (3, None)


def test_the_interval_holds_the_median_in_95_of_100_samples() -> None:
    rng = np.random.default_rng(0)
    held = []
    for sample in np.exp(rng.normal(5, 1, (2_000, 25))):
        interval = median(sample).interval
        held.append(interval is not None and interval.low <= np.exp(5) <= interval.high)
    assert 0.94 < np.mean(held) < 0.98


def test_prompts_order_the_levels_by_the_median_of_their_samples() -> None:
    lengths = {
        "low": {"a": [10, 12, 90], "b": [10], "c": [0], "d": [5]},
        "medium": {"a": [20, 20, 1], "b": [9], "c": [5]},
        "high": {"a": [36, 36, 30], "b": [40], "c": [9], "d": [10]},
        "none": {"a": [0], "b": [3]},
    }
    found = obedience(lengths)
    assert (found.prompts, found.ordered) == (3, 2)  # a and c
    assert found.compared == 3 and found.ratio == (3.0, None)  # 36/12, 40/10, 10/5
    assert found.ordered_interval == pytest.approx((0.2077, 0.9385), abs=1e-4)


def test_a_level_that_was_not_answered_leaves_nothing_to_compare() -> None:
    found = obedience({"low": {"a": [10]}})
    assert (found.prompts, found.ordered, found.ratio, found.ordered_interval) == (0, 0, None, None)
