"""Regressions from mixture to score, and what they propose."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

from sft_toolkit.errors import UsageError
from sft_toolkit.mergemix.proposals import APART, propose
from sft_toolkit.mergemix.ranking import RankOptions
from sft_toolkit.mergemix.ridge import PENALTIES, _Path, choose_ridge, linear, quadratic
from sft_toolkit.mergemix.surrogate import fit_surrogate


def simplex(n: int, clusters: int, seed: int) -> np.ndarray:
    return np.random.RandomState(seed).dirichlet(np.ones(clusters), n)


def bowl(mixtures: np.ndarray) -> np.ndarray:
    """Best at (1/2, 1/3, 1/6)."""
    return 1 - ((mixtures - [1 / 2, 1 / 3, 1 / 6]) ** 2).sum(axis=1)


def test_ridge_without_noise_finds_the_linear_law() -> None:
    points = simplex(12, 4, 0)
    law = np.array([1.0, 2.0, -1.0, 0.5])
    surrogate = fit_surrogate("ridge", points, points @ law)
    fresh = simplex(50, 4, 1)
    assert np.allclose(surrogate.predict(fresh), fresh @ law, atol=1e-4)
    assert surrogate.error < 1e-4 < surrogate.baseline_error
    assert surrogate.explains


def test_ridge_solves_the_normal_equations() -> None:
    """Features (0, 1), (1, 0) centre to -+1/2 both; with n = 2 and penalty p: slope -+ 1/2 / (1 + 2 p) each."""
    path = _Path(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0], [1.0]]))
    found = path.predict(np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]))[:, :, 0]
    slope = 1 / 2 / (1 + 2 * PENALTIES)
    assert np.allclose(found, np.stack([0.5 + slope, 0.5 - slope, np.full(9, 0.5)], axis=1))


@pytest.mark.parametrize("expand", [linear, quadratic])
def test_the_short_cut_for_leaving_one_out_is_leaving_one_out(expand: Any) -> None:
    """Against the normal equations solved without each point, as they stand in textbooks."""
    features, scores = expand(simplex(9, 3, 1)), np.random.RandomState(2).standard_normal((9, 2))
    expected = np.empty((len(PENALTIES), 9, 2))
    for place in range(9):
        kept = np.arange(9) != place
        centre, mean = features[kept].mean(axis=0), scores[kept].mean(axis=0)
        centred = features[kept] - centre
        for setting, penalty in enumerate(PENALTIES):
            gram = centred.T @ centred + 8 * penalty * np.eye(features.shape[1])
            slopes = np.linalg.solve(gram, centred.T @ (scores[kept] - mean))
            expected[setting, place] = scores[place] - mean - (features[place] - centre) @ slopes
    assert np.allclose(_Path(features, scores).left_out_errors(), np.sqrt((expected**2).mean(axis=1)), rtol=1e-6)


def test_the_choice_among_settings_is_made_anew_without_each_mixture() -> None:
    points, scores = simplex(8, 3, 4), np.random.RandomState(4).standard_normal(8)
    surrogate = fit_surrogate("ridge", points, scores)
    for place in range(8):
        kept = np.arange(8) != place
        without = choose_ridge(points[kept], scores[kept][:, None]).predict(points[place : place + 1])[0, 0]
        assert surrogate.residuals[place] == pytest.approx(scores[place] - without)


def test_an_optimum_inside_the_simplex_is_found_by_the_quadratic() -> None:
    points = simplex(20, 3, 2)
    surrogate = fit_surrogate("ridge", points, bowl(points))
    assert surrogate.name.startswith("quadratic")
    (best, *_) = propose(surrogate, points, 3)
    assert np.abs(best.weights - [1 / 2, 1 / 3, 1 / 6]).max() < 0.03


def test_a_loss_is_proposed_where_it_is_small() -> None:
    points = simplex(20, 3, 2)
    surrogate = fit_surrogate("ridge", points, -bowl(points))
    (best, *_) = propose(surrogate, points, 1, lower_is_better=True)
    assert np.abs(best.weights - [1 / 2, 1 / 3, 1 / 6]).max() < 0.03


@pytest.mark.parametrize(("clusters", "n"), [(3, 12), (8, 12), (3, 5)])
def test_scores_that_depend_on_nothing_are_not_explained(clusters: int, n: int) -> None:
    """At a chance of 5% the 20 sets hold one explained one; five or more come about once in 400 times."""
    explained = [
        fit_surrogate("ridge", simplex(n, clusters, seed), np.random.RandomState(seed).standard_normal(n)).explains
        for seed in range(20)
    ]
    assert sum(explained) <= 4


def test_scores_that_depend_on_the_mixture_are_explained() -> None:
    """Slopes 3, 0 and -3, noise .3."""
    for seed in range(8):
        points = simplex(12, 3, seed)
        scores = 3 * points @ [1.0, 0.0, -1.0] + 0.3 * np.random.RandomState(seed).standard_normal(12)
        assert fit_surrogate("ridge", points, scores).explains


def test_few_scores_have_no_interval() -> None:
    """Jackknife+ at 90% needs the ninth of nine residuals; of eight there is none."""
    points = simplex(9, 3, 0)
    assert fit_surrogate("ridge", points[:8], bowl(points[:8])).intervals(points) == [None] * 9
    assert None not in fit_surrogate("ridge", points, bowl(points)).intervals(points)


def test_the_error_of_the_mean_is_that_of_leaving_one_out() -> None:
    """Each of 0, 0, 0, 4 against the mean of the other three: 4/3 three times and 4."""
    surrogate = fit_surrogate("ridge", simplex(4, 2, 0), np.array([0.0, 0.0, 0.0, 4.0]))
    assert surrogate.baseline_error == pytest.approx(((3 * (4 / 3) ** 2 + 16) / 4) ** 0.5)


def test_intervals_hold_nine_of_ten_unseen_scores() -> None:
    """Jackknife+ promises 80% at the 90% level and mostly keeps 90%."""
    held = []
    for seed in range(15):
        points, fresh = simplex(24, 3, seed), simplex(20, 3, 1000 + seed)
        noise = np.random.RandomState(seed).standard_normal((2, 24)) * 0.1
        surrogate = fit_surrogate("ridge", points, bowl(points) + noise[0])
        scores = bowl(fresh) + noise[1, :20]
        found = [interval for interval in surrogate.intervals(fresh) if interval]
        held += [low <= score <= high for score, (low, high) in zip(scores, found, strict=True)]
    assert 0.84 < np.mean(held) < 0.98


def test_proposals_stay_within_what_was_scored_and_apart_from_each_other() -> None:
    """All candidates give the first cluster between 0.3 and 0.4: no proposal gives it more or less."""
    first = np.random.RandomState(0).uniform(0.3, 0.4, 15)
    rest = simplex(15, 2, 1) * (1 - first)[:, None]
    points = np.column_stack([first, rest])
    proposals = propose(fit_surrogate("ridge", points, points @ [9.0, 1.0, 0.0]), points, 4)
    for place, proposal in enumerate(proposals):
        assert first.min() - 1e-9 <= proposal.weights[0] <= first.max() + 1e-9
        assert proposal.weights.sum() == pytest.approx(1)
        assert proposal.interval is not None
        assert proposal.interval.low <= proposal.expected <= proposal.interval.high
        for other in proposals[:place]:
            assert np.abs(proposal.weights - other.weights).sum() / 2 >= APART
            assert other.expected >= proposal.expected


def test_the_same_seed_proposes_the_same() -> None:
    points = simplex(10, 3, 0)
    surrogate = fit_surrogate("ridge", points, bowl(points))
    one, two = (propose(surrogate, points, 3, seed=4) for _ in range(2))
    assert [proposal.expected for proposal in one] == [proposal.expected for proposal in two]


def test_too_few_scores_and_unknown_regressions_are_refused() -> None:
    with pytest.raises(UsageError, match="3 scored mixtures are too few"):
        fit_surrogate("auto", simplex(3, 2, 0), np.arange(3.0))
    with pytest.raises(UsageError, match="forest: unknown"):
        RankOptions(surrogate="forest")


@pytest.mark.skipif(importlib.util.find_spec("lightgbm") is not None, reason="LightGBM is installed")
def test_without_lightgbm_auto_is_ridge_and_asking_for_it_names_the_remedy() -> None:
    points = simplex(9, 2, 0)
    assert "ridge" in fit_surrogate("auto", points, points[:, 0]).name
    with pytest.raises(UsageError, match="LightGBM is not installed"):
        fit_surrogate("lightgbm", points, points[:, 0])


def test_lightgbm_fits_where_it_is_installed() -> None:
    pytest.importorskip("lightgbm")
    points = simplex(40, 3, 0)
    surrogate = fit_surrogate("lightgbm", points, np.where(points[:, 0] > 0.5, 1.0, 0.0))
    assert surrogate.name == "LightGBM" and surrogate.explains
