"""Regression from a mixture to its score: ridge in closed form, or LightGBM where it is installed.

As in DeMix (arXiv 2602.00747). Every model is judged by its leave-one-out error, beside that of the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from sft_toolkit.choices import SurrogateKind
from sft_toolkit.errors import UsageError
from sft_toolkit.mergemix.rank_correlation import Floats, Interval

Predict = Callable[[Floats], Floats]
"""Scores of mixtures: float64[m, K] -> float64[m]."""

_PENALTIES = tuple(10.0**power for power in range(-6, 3))
FEWEST = 4


@dataclass(frozen=True)
class Surrogate:
    """A fitted model. `error` is the root mean square of leave-one-out residuals, `baseline_error` that of the mean.

    `left_out[i]` predicts without mixture i, `residuals[i]` is how far it is from the score of i.
    """

    name: str
    predict: Predict
    left_out: Sequence[Predict]
    residuals: Floats
    baseline_error: float

    @property
    def error(self) -> float:
        return float(np.sqrt((self.residuals**2).mean()))

    @property
    def explains(self) -> bool:
        """Whether it foresees a score that it has not seen better than the mean of the others does."""
        return self.error < self.baseline_error

    def intervals(self, mixtures: Floats, level: float = 0.9) -> list[Interval]:
        """Jackknife+ prediction intervals (Barber et al. 2021, arXiv 1905.02928): no distribution is assumed."""
        centres = np.array([predict(mixtures) for predict in self.left_out])
        spread = np.abs(self.residuals)[:, None]
        n = len(self.left_out)
        place = min(n, int(np.ceil(level * (n + 1)))) - 1
        low = np.sort(centres - spread, axis=0)[n - 1 - place]
        high = np.sort(centres + spread, axis=0)[place]
        return [Interval(float(one), float(two)) for one, two in zip(low, high, strict=True)]


def fit_surrogate(kind: SurrogateKind, mixtures: Floats, scores: Floats) -> Surrogate:
    """Fit `ridge` or `lightgbm`; `auto` takes whichever of those installed has the smaller leave-one-out error.

    mixtures: float64[n, K], scores: float64[n]. Raises UsageError for fewer than 4 scored mixtures.
    """
    if len(scores) < FEWEST:
        raise UsageError(f"{len(scores)} scored mixtures are too few to fit", f"score {FEWEST} or more")
    if kind == "ridge":
        return _fit_ridge(mixtures, scores)
    if kind == "lightgbm":
        return _judged("LightGBM", _lightgbm_trainer(), mixtures, scores)
    ridge = _fit_ridge(mixtures, scores)
    if not _lightgbm_is_installed():
        return ridge
    return min(ridge, _judged("LightGBM", _lightgbm_trainer(), mixtures, scores), key=lambda fitted: fitted.error)


Train = Callable[[Floats, Floats], Predict]


def _judged(name: str, train: Train, mixtures: Floats, scores: Floats) -> Surrogate:
    n = len(scores)
    others = [np.arange(n) != place for place in range(n)]
    left_out = [train(mixtures[kept], scores[kept]) for kept in others]
    residuals = np.array(
        [scores[place] - predict(mixtures[place : place + 1])[0] for place, predict in enumerate(left_out)]
    )
    baseline = np.array([scores[place] - scores[kept].mean() for place, kept in enumerate(others)])
    return Surrogate(name, train(mixtures, scores), left_out, residuals, float(np.sqrt((baseline**2).mean())))


def _fit_ridge(mixtures: Floats, scores: Floats) -> Surrogate:
    """Linear or quadratic in the weights, whichever with its best penalty foresees better."""
    fitted = [
        _judged(f"{shape} ridge, penalty {penalty:g}", _ridge_trainer(expand, penalty), mixtures, scores)
        for shape, expand in (("linear", _linear), ("quadratic", _quadratic))
        for penalty in _PENALTIES
    ]
    return min(fitted, key=lambda surrogate: surrogate.error)


def _ridge_trainer(expand: Callable[[Floats], Floats], penalty: float) -> Train:
    """(Z'Z + n penalty I) b = Z'(y - mean y), Z the centred features; the intercept is not penalised."""

    def train(mixtures: Floats, scores: Floats) -> Predict:
        features = expand(mixtures)
        centre, mean = features.mean(axis=0), scores.mean()
        centred = features - centre
        gram = centred.T @ centred + len(scores) * penalty * np.eye(features.shape[1])
        slopes = np.linalg.solve(gram, centred.T @ (scores - mean))
        return lambda asked: mean + (expand(asked) - centre) @ slopes

    return train


def _linear(mixtures: Floats) -> Floats:
    return mixtures


def _quadratic(mixtures: Floats) -> Floats:
    """The weights and their products; squares follow from these, for the weights sum to one."""
    first, second = np.triu_indices(mixtures.shape[1], 1)
    return np.concatenate([mixtures, mixtures[:, first] * mixtures[:, second]], axis=1)


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
