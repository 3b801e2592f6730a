"""Regression from a mixture to its score: ridge in closed form, or LightGBM where it is installed.

As in DeMix (arXiv 2602.00747). Every model is judged by its leave-one-out error beside that of the mean; ridge, which
chooses among settings, also by how often scores in random order would let it do as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import permutations

import numpy as np

from sft_toolkit.choices import SurrogateKind
from sft_toolkit.errors import UsageError
from sft_toolkit.mergemix.rank_correlation import Floats, Interval
from sft_toolkit.mergemix.ridge import ChosenRidge, choose_ridge, nested

Predict = Callable[[Floats], Floats]
"""Scores of mixtures: float64[m, K] -> float64[m]."""

FEWEST = 4
FEWEST_FOR_TREES = 30
"""Below, `auto` does not try LightGBM: a leaf needs three mixtures."""
_CHANCE = 0.05
_ORDERS = 199
"""Random orders of the scores."""
_ALL_ORDERS_UP_TO = 5


@dataclass(frozen=True)
class Surrogate:
    """A fitted model. `error` is the root mean square of leave-one-out residuals, `baseline_error` that of the mean.

    `left_out[i]` predicts without mixture i, whatever was chosen for the model included, `residuals[i]` is how far it
    is from the score of i. `chance`: how often scores in random order give an error as small; None for LightGBM, of
    which nothing is chosen, and which would take minutes to train on as many orders.
    """

    name: str
    predict: Predict
    left_out: Sequence[Predict]
    residuals: Floats
    baseline_error: float
    chance: float | None

    @property
    def error(self) -> float:
        return _root_mean_square(self.residuals)

    @property
    def explains(self) -> bool:
        """Whether it foresees a score that it has not seen better than the mean of the others does, beyond chance."""
        return self.error < self.baseline_error and (self.chance is None or self.chance <= _CHANCE)

    def intervals(self, mixtures: Floats, level: float = 0.9) -> list[Interval | None]:
        """Jackknife+ prediction intervals (Barber et al. 2021, arXiv 1905.02928): no distribution is assumed.

        None where there are too few scores for the level, below 9 for 90%.
        """
        n = len(self.left_out)
        place = int(np.ceil(level * (n + 1))) - 1
        if place >= n:
            return [None] * len(mixtures)
        centres = np.array([predict(mixtures) for predict in self.left_out])
        spread = np.abs(self.residuals)[:, None]
        low = np.sort(centres - spread, axis=0)[n - 1 - place]
        high = np.sort(centres + spread, axis=0)[place]
        return [Interval(float(one), float(two)) for one, two in zip(low, high, strict=True)]


def fit_surrogate(kind: SurrogateKind, mixtures: Floats, scores: Floats, seed: int = 0) -> Surrogate:
    """Fit `ridge` or `lightgbm`; `auto` takes ridge, or from 30 mixtures on, where LightGBM is installed, the better.

    mixtures: float64[n, K], scores: float64[n]. Raises UsageError for fewer than 4 scored mixtures.
    """
    if len(scores) < FEWEST:
        raise UsageError(f"{len(scores)} scored mixtures are too few to fit", f"score {FEWEST} or more")
    if kind == "lightgbm":
        return _fit_trees(mixtures, scores)
    ridge = _fit_ridge(mixtures, scores, seed)
    if kind == "ridge" or len(scores) < FEWEST_FOR_TREES or not _lightgbm_is_installed():
        return ridge
    return min(ridge, _fit_trees(mixtures, scores), key=lambda fitted: fitted.error)


def _fit_ridge(mixtures: Floats, scores: Floats, seed: int) -> Surrogate:
    whole = choose_ridge(mixtures, scores[:, None])
    left_out, residuals = nested(mixtures, scores[:, None])
    errors = np.sqrt((nested(mixtures, _reordered(scores, seed))[1] ** 2).mean(axis=0))
    found = residuals[:, 0]
    chance = _share_as_small(errors, _root_mean_square(found), exhaustive=len(scores) <= _ALL_ORDERS_UP_TO)
    predictors = [_only_column(one) for one in left_out]
    return Surrogate(whole.name(), _only_column(whole), predictors, found, _error_of_mean(scores), chance)


def _only_column(chosen: ChosenRidge) -> Predict:
    return lambda asked: chosen.predict(asked)[:, 0]


def _fit_trees(mixtures: Floats, scores: Floats) -> Surrogate:
    train = _lightgbm_trainer()
    left_out, residuals = _leave_one_out(train, mixtures, scores)
    return Surrogate("LightGBM", train(mixtures, scores), left_out, residuals, _error_of_mean(scores), None)


Train = Callable[[Floats, Floats], Predict]


def _leave_one_out(train: Train, mixtures: Floats, scores: Floats) -> tuple[list[Predict], Floats]:
    n = len(scores)
    left_out = [train(mixtures[kept], scores[kept]) for kept in (np.arange(n) != place for place in range(n))]
    found = [predict(mixtures[place : place + 1])[0] for place, predict in enumerate(left_out)]
    return left_out, scores - np.array(found)


def _reordered(scores: Floats, seed: int) -> Floats:
    """Scores in random orders, of few scores in all of them: float64[n, orders]."""
    if len(scores) <= _ALL_ORDERS_UP_TO:
        return np.array(list(permutations(scores))).T
    generator = np.random.RandomState(seed % 2**32)
    return np.stack([generator.permutation(scores) for _ in range(_ORDERS)], axis=1)


def _share_as_small(errors: Floats, error: float, exhaustive: bool) -> float:
    """How many of the errors are as small; one more of one more where the orders are a sample (the one seen counts)."""
    as_small, extra = int(np.count_nonzero(errors <= error * (1 + 1e-9))), 0 if exhaustive else 1
    return (as_small + extra) / (len(errors) + extra)


def _error_of_mean(scores: Floats) -> float:
    """Root mean square error of the mean of all others: n / (n - 1) times the distance from the mean."""
    return _root_mean_square(scores - scores.mean()) * len(scores) / (len(scores) - 1)


def _root_mean_square(values: Floats) -> float:
    return float(np.sqrt((values**2).mean()))


def _lightgbm_is_installed() -> bool:
    return find_spec("lightgbm") is not None


def _lightgbm_trainer() -> Train:
    """Small trees and much shrinkage, for tens of points. Raises UsageError where LightGBM is missing."""
    if not _lightgbm_is_installed():
        raise UsageError("LightGBM is not installed", "pip install lightgbm")
    lightgbm = import_module("lightgbm")

    options = {
        "objective": "regression",
        "num_leaves": 4,
        "min_data_in_leaf": 3,
        "learning_rate": 0.05,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "verbose": -1,
    }

    def train(mixtures: Floats, scores: Floats) -> Predict:
        booster = lightgbm.train(options, lightgbm.Dataset(mixtures, scores), num_boost_round=200)
        return lambda asked: np.asarray(booster.predict(asked))

    return train
