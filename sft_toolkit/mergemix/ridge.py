"""Ridge regression of scores on mixtures, its setting chosen by leave-one-out error, and that choice judged in turn.

18 settings: linear or quadratic features, nine penalties. Whoever picks the best of 18 by an error and then reports
that error finds structure in half of all noise. Here the whole procedure, the choice included, is repeated without each
mixture and predicts that one (nested leave-one-out). Many score vectors go through at once: a singular value
decomposition depends on the mixtures alone, so that a permutation test costs little more than one fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sft_toolkit.mergemix.rank_correlation import Floats

PENALTIES = np.array([10.0**power for power in range(-6, 3)])


def linear(mixtures: Floats) -> Floats:
    return mixtures


def quadratic(mixtures: Floats) -> Floats:
    """The weights and their products; squares follow from these, for the weights sum to one."""
    first, second = np.triu_indices(mixtures.shape[1], 1)
    return np.concatenate([mixtures, mixtures[:, first] * mixtures[:, second]], axis=1)


Expand = Callable[[Floats], Floats]
SHAPES: tuple[tuple[str, Expand], ...] = (("linear", linear), ("quadratic", quadratic))


@dataclass(frozen=True)
class ChosenRidge:
    """Fits of `columns` score vectors on the same mixtures, each by its own best setting.

    setting: int[columns], shape * len(PENALTIES) + penalty. Predict = (Z'Z + m penalty I)^-1 Z'(y - mean y), Z the m
    centred features; the intercept is not penalised.
    """

    paths: tuple[_Path, ...]
    setting: NDArray[np.intp]

    def predict(self, mixtures: Floats) -> Floats:
        """float64[asked, columns]"""
        every = np.stack([path.predict(expand(mixtures)) for path, (_, expand) in zip(self.paths, SHAPES, strict=True)])
        flat = every.reshape(-1, *every.shape[2:])
        return flat[self.setting, :, np.arange(len(self.setting))].T

    def name(self, column: int = 0) -> str:
        shape, penalty = divmod(int(self.setting[column]), len(PENALTIES))
        return f"{SHAPES[shape][0]} ridge, penalty {PENALTIES[penalty]:g}"


class _Path:
    """All penalties of one set of features, float64[m, d], for scores float64[m, columns]."""

    def __init__(self, features: Floats, scores: Floats) -> None:
        self._centre, self._mean = features.mean(axis=0), scores.mean(axis=0)
        self._left, self._singular, self._right = np.linalg.svd(features - self._centre, full_matrices=False)
        self._scores = scores
        self._projected = self._left.T @ (scores - self._mean)

    def left_out_errors(self) -> Floats:
        """Root mean square error of leaving one out, float64[penalties, columns].

        For a linear smoother of this kind the residual without point i is its residual with it, over 1 - h_ii. A fit
        without one has m - 1 points, and its penalty is (m - 1) times the setting: so it is here.
        """
        m = len(self._scores)
        squares = self._singular**2
        shrink = squares / (squares + (m - 1) * PENALTIES[:, None])
        fitted = self._mean + np.einsum("mk,pk,kc->pmc", self._left, shrink, self._projected, optimize=True)
        leverage = 1 / m + shrink @ (self._left**2).T
        residuals = (self._scores - fitted) / np.maximum(1 - leverage, 1e-12)[..., None]
        return np.sqrt((residuals**2).mean(axis=1))

    def predict(self, features: Floats) -> Floats:
        """float64[penalties, asked, columns]"""
        m = len(self._scores)
        slope = self._singular / (self._singular**2 + m * PENALTIES[:, None])
        rotated = (features - self._centre) @ self._right.T
        return self._mean + np.einsum("ak,pk,kc->pac", rotated, slope, self._projected, optimize=True)


def choose_ridge(mixtures: Floats, scores: Floats) -> ChosenRidge:
    """The setting with the least leave-one-out error for each column. mixtures: float64[m, K]; scores: [m, columns]."""
    paths = tuple(_Path(expand(mixtures), scores) for _, expand in SHAPES)
    errors = np.concatenate([path.left_out_errors() for path in paths])
    return ChosenRidge(paths, errors.argmin(axis=0))


def nested(mixtures: Floats, scores: Floats) -> tuple[list[ChosenRidge], Floats]:
    """What is chosen without each mixture, and how far it is from that mixture's scores: float64[n, columns]."""
    n = len(scores)
    chosen, residuals = [], np.empty_like(scores)
    for place in range(n):
        kept = np.arange(n) != place
        without = choose_ridge(mixtures[kept], scores[kept])
        chosen.append(without)
        residuals[place] = scores[place] - without.predict(mixtures[place : place + 1])[0]
    return chosen, residuals
