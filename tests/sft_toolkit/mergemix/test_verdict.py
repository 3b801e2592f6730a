"""Whether merged scores say anything: the verdict against simulated proxies."""

from __future__ import annotations

import numpy as np
import pytest

from sft_toolkit.mergemix.verdict import Verdict, check_ranks, pooled_noise, unchecked_warning

SIMULATIONS = 150


def verdicts(n: int, reliability: float, sign: int = 1, simulations: int = SIMULATIONS) -> list[Verdict]:
    """Of proxies that measure the same truth as training, both noisy by their reliability; at 0 they are useless."""
    generator = np.random.RandomState(n)
    found = []
    for _ in range(simulations):
        truth, noise_x, noise_y = generator.standard_normal((3, n))
        merged = np.sqrt(reliability) * truth + np.sqrt(1 - reliability) * noise_x
        trained = sign * np.sqrt(reliability) * truth + np.sqrt(1 - reliability) * noise_y
        found.append(check_ranks(merged, trained, None, draws=200).verdict)
    return found


@pytest.mark.parametrize("n", [6, 8, 16, 32, 64])
def test_a_useless_proxy_is_seen_through(n: int) -> None:
    """At a chance of 5% the 150 verdicts hold 7.5 wrong ones; 16 or more come about once in 300 times."""
    assert sum(verdict is not Verdict.NOTHING for verdict in verdicts(n, 0.0)) <= 15


def test_a_useless_proxy_is_seen_through_even_with_five_pairs() -> None:
    """The permutation probability is exact: 4 of the 120 orders of five are as unlikely as 5%, 20 of these."""
    assert sum(verdict is not Verdict.NOTHING for verdict in verdicts(5, 0.0, simulations=600)) <= 30


@pytest.mark.parametrize(
    ("n", "reliability", "share"), [(6, 0.95, 0.5), (10, 0.95, 0.9), (16, 0.8, 0.8), (64, 0.5, 0.9)]
)
def test_a_perfect_proxy_is_recognised_where_candidates_and_noise_allow(
    n: int, reliability: float, share: float
) -> None:
    found = verdicts(n, reliability)
    assert sum(verdict is Verdict.RANKS for verdict in found) >= share * SIMULATIONS
    assert Verdict.MISRANKS not in found


def test_a_perfect_proxy_in_much_noise_mostly_says_nothing_with_six_candidates() -> None:
    assert sum(verdict is Verdict.NOTHING for verdict in verdicts(6, 0.5)) >= 0.8 * SIMULATIONS


def test_a_proxy_that_orders_backwards_is_called_so() -> None:
    found = verdicts(32, 0.9, sign=-1)
    assert sum(verdict is Verdict.MISRANKS for verdict in found) == SIMULATIONS


def test_four_candidates_say_nothing_even_in_perfect_agreement() -> None:
    scores = np.arange(4.0)
    check = check_ranks(scores, scores, None)
    assert (check.verdict, check.rho, check.n) == (Verdict.NOTHING, 1.0, 4)


def test_one_candidate_has_no_rho() -> None:
    check = check_ranks(np.ones(1), np.ones(1), (0.1, 0.1))
    assert check.verdict is Verdict.NOTHING and np.isnan(check.rho)


def test_equal_scores_say_nothing() -> None:
    assert check_ranks(np.ones(20), np.arange(20.0), (0.1, 0.1)).verdict is Verdict.NOTHING


def test_the_ceiling_is_told_where_the_noise_is_known() -> None:
    """Scores 0..15 have variance 22.67, half of which is noise of standard deviation 3.367: 0.456 is the most."""
    scores = np.arange(16.0)
    assert check_ranks(scores, scores, (3.367, 3.367)).ceiling == pytest.approx(0.456, abs=0.001)
    assert check_ranks(scores, scores, (100.0, 0.0)).ceiling == 0
    assert check_ranks(scores, scores, None).ceiling is None


def test_noise_comes_from_models_that_were_scored_more_than_once() -> None:
    """Squares around the means: 2 * 1 and 2 * 4 + 0, over 1 + 2 degrees of freedom: sqrt(10 / 3)."""
    noise = pooled_noise([[1, 3], [7], [4, 8, 6]])
    assert noise is not None and noise.deviation == pytest.approx((10 / 3) ** 0.5) and noise.freedom == 3
    assert pooled_noise([[1], [2]]) is None


def test_noise_that_hides_even_a_perfect_proxy_is_said_to_do_so() -> None:
    """Scores 0..7 have a standard deviation of 2.45. With noise of 2.4 a perfect proxy reaches .17 on average."""
    merged, trained = np.arange(8.0), np.array([3.0, 0, 7, 2, 6, 1, 5, 4])
    assert check_ranks(merged, trained, (0.0, 2.4)).verdict is Verdict.HIDDEN
    assert check_ranks(merged, trained, (0.0, 0.1)).verdict is Verdict.NOTHING
    assert check_ranks(merged, trained, None).verdict is Verdict.NOTHING
    assert check_ranks(merged, merged, (0.0, 2.4)).verdict is Verdict.RANKS


def test_many_clusters_without_a_check_draw_the_warning_with_the_reports_figure() -> None:
    assert "-0.09" in (unchecked_warning(4, None) or "")
    assert unchecked_warning(3, None) is None
    assert unchecked_warning(20, check_ranks(np.arange(9.0), np.arange(9.0), None)) is None
