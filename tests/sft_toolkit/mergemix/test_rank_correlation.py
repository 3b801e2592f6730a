"""Rank correlation, its interval, its chance and its ceiling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.mergemix.rank_correlation import (
    average_ranks,
    noise_ceiling,
    null_band,
    permutation_probability,
    spearman,
    spearman_interval,
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


def test_the_interval_is_that_of_bonett_and_wright_with_the_quantile_of_t() -> None:
    """rho .8, n 6: atanh .8 = 1.0986, sqrt((1 + .32) / 3) = .6633, t(4) = 2.7764: tanh(1.0986 -+ 1.8417)."""
    assert spearman_interval(0.8, 6) == pytest.approx((-0.6310, 0.9944), abs=1e-4)
    low, high = spearman_interval(-0.8, 6)
    assert (low, high) == pytest.approx((-0.9944, 0.6310), abs=1e-4)


def test_perfect_agreement_has_the_interval_of_one_exchanged_pair_of_neighbours_up_to_one() -> None:
    """Ranks 1 2 3 4 5 against 1 2 3 5 4: rho .9."""
    below = spearman_interval(0.9, 5)
    assert spearman_interval(1.0, 5) == (below.low, 1.0) and spearman_interval(-1.0, 5) == (-1.0, -below.low)


def test_there_is_no_interval_where_none_holds() -> None:
    assert spearman_interval(0.5, 4) is None and spearman_interval(float("nan"), 20) is None


@pytest.mark.parametrize("n", [5, 8, 12, 20])
@pytest.mark.parametrize("correlation", [0.0, 0.8, 0.95])
def test_the_interval_covers_what_it_says(n: int, correlation: float) -> None:
    """The rank correlation behind normal pairs with correlation r is 6 / pi asin(r / 2)."""
    x, noise = np.random.RandomState(n).standard_normal((2, 1500, n))
    y = correlation * x + np.sqrt(1 - correlation**2) * noise
    found = [spearman_interval(spearman(one, two), n) for one, two in zip(x, y, strict=True)]
    truth = 6 / np.pi * np.arcsin(correlation / 2)
    assert np.mean([interval is not None and interval.low <= truth <= interval.high for interval in found]) > 0.94


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
