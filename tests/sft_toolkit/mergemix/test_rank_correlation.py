"""Rank correlation, its interval, its chance and its ceiling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.mergemix.rank_correlation import (
    average_ranks,
    bootstrap_interval,
    noise_ceiling,
    null_band,
    permutation_probability,
    spearman,
)

SCORES = st.lists(st.integers(0, 5), min_size=3, max_size=12)


def array(*values: float) -> np.ndarray:
    return np.array(values, float)


def test_equal_values_share_the_mean_of_their_ranks() -> None:
    assert average_ranks(array(5, 7, 5, 1)).tolist() == [2.5, 4.0, 2.5, 1.0]


def test_spearman_without_ties_is_the_sum_of_squared_rank_differences() -> None:
    """Ranks 1 2 3 4 5 against 2 1 4 3 5: d^2 sums to 4, so rho = 1 - 6 * 4 / (5 * 24) = 0.8."""
    assert spearman(array(10, 20, 30, 40, 50), array(2, 1, 4, 3, 5)) == pytest.approx(0.8)


def test_spearman_with_ties_is_pearson_of_average_ranks() -> None:
    """Ranks 1 2.5 2.5 4 against 1 2 3 4: covariance 4.5, variances 4.5 and 5, so rho = 4.5 / sqrt(22.5)."""
    assert spearman(array(1, 2, 2, 3), array(1, 2, 3, 4)) == pytest.approx(4.5 / 22.5**0.5)


def test_a_constant_side_has_no_correlation() -> None:
    assert np.isnan(spearman(array(1, 1, 1), array(1, 2, 3)))


@given(SCORES, st.data())
def test_spearman_is_symmetric_bounded_and_blind_to_monotone_changes(xs: list[int], data: st.DataObject) -> None:
    ys = data.draw(st.lists(st.integers(0, 5), min_size=len(xs), max_size=len(xs)))
    x, y = array(*xs), array(*ys)
    rho = spearman(x, y)
    if np.isnan(rho):
        assert len(set(xs)) == 1 or len(set(ys)) == 1
        return
    assert abs(rho) <= 1 + 1e-12
    assert spearman(y, x) == pytest.approx(rho)
    assert spearman(np.exp(x), y**3) == pytest.approx(rho)
    assert spearman(-x, y) == pytest.approx(-rho)


def test_chance_is_exact_for_few_pairs() -> None:
    """Of the 120 orders of five only two are as extreme as the identity: itself and its reverse."""
    assert permutation_probability(array(1, 2, 3, 4, 5), array(1, 2, 3, 4, 5), 0, 0) == 2 / 120


def test_chance_of_many_pairs_is_estimated_and_never_zero() -> None:
    same = np.arange(30.0)
    assert permutation_probability(same, same, 999, 0) == 1 / 1000
    assert permutation_probability(same, np.random.RandomState(3).permutation(same), 999, 0) > 0.05
    assert permutation_probability(same, np.zeros(30), 999, 0) == 1


def test_the_same_seed_gives_the_same_interval() -> None:
    x, y = np.random.RandomState(1).standard_normal((2, 12))
    interval = bootstrap_interval(x, y, 300, 7)
    assert interval == bootstrap_interval(x, y, 300, 7)
    assert -1 <= interval.low < spearman(x, y) < interval.high <= 1


def test_an_interval_of_constant_scores_is_everything() -> None:
    assert bootstrap_interval(np.ones(5), np.arange(5.0), 50, 0) == (-1, 1)


@pytest.mark.parametrize(("n", "band"), [(10, 0.65), (16, 0.49), (64, 0.25)])
def test_unrelated_scores_stay_within_the_known_band(n: int, band: float) -> None:
    assert null_band(n) == pytest.approx(band, abs=0.015)


def test_a_perfect_proxy_in_as_much_noise_as_spread_reaches_0_46_with_16_candidates() -> None:
    assert noise_ceiling(16, 0.5, 0.5) == pytest.approx(0.456, abs=0.001)


@pytest.mark.parametrize(("n", "reliabilities"), [(6, (0.9, 0.5)), (16, (0.5, 0.5)), (40, (0.8, 1.0))])
def test_the_ceiling_is_what_simulation_finds(n: int, reliabilities: tuple[float, float]) -> None:
    truth, *noises = np.random.RandomState(0).standard_normal((3, 4000, n))
    x, y = (
        np.sqrt(share) * truth + np.sqrt(1 - share) * noise for share, noise in zip(reliabilities, noises, strict=True)
    )
    found = np.mean([spearman(one, two) for one, two in zip(x, y, strict=True)])
    assert noise_ceiling(n, *reliabilities) == pytest.approx(found, abs=0.015)


def test_without_noise_the_ceiling_is_one_and_with_noise_alone_zero() -> None:
    assert noise_ceiling(9, 1, 1) == pytest.approx(1)
    assert noise_ceiling(9, 0, 1) == 0


def test_the_bootstrap_is_that_of_drawing_pairs_one_by_one() -> None:
    x, y = np.random.RandomState(5).standard_normal((2, 14))
    y += x
    picks = np.random.RandomState(6).randint(0, 14, (4000, 14))
    expected = np.quantile([spearman(x[pick], y[pick]) for pick in picks], [0.025, 0.975])
    assert bootstrap_interval(x, y, 4000, 0) == pytest.approx(expected, abs=0.03)
