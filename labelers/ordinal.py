"""Proportional odds (McCullagh 1980): a logistic regression of ordered levels, one slope and a threshold per step.

P(level <= k) = sigmoid(threshold[k] - x · slope). An error of two levels costs more than one of a single level, which
a softmax over the levels does not know.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

Floats = npt.NDArray[np.float64]

_SMALLEST = 1e-12


def fit(
    columns: sparse.csr_matrix, levels: npt.NDArray[np.integer], count: int, strength: float, iterations: int
) -> tuple[Floats, Floats]:
    """The slope: float64[d] and thresholds: float64[count - 1], which rise.

    Minimises the summed negative log-likelihood plus |slope|² / (2 strength). columns: [n, d]; levels: int[n],
    0 … count - 1, each of which occurs.
    """
    shares = np.cumsum(np.bincount(levels, minlength=count))[:-1] / len(levels)
    starts = np.log(shares / (1 - shares))
    begin = np.concatenate([np.zeros(columns.shape[1]), starts[:1], np.log(np.diff(starts))])
    solved = minimize(
        _loss, begin, (columns, levels, count, strength), jac=True, method="L-BFGS-B", options={"maxiter": iterations}
    )
    return solved.x[: columns.shape[1]], _thresholds(solved.x[columns.shape[1] :])


def probabilities(scores: Floats, thresholds: Floats) -> Floats:
    """P(level): float64[n, count] of scores x · slope: float64[n]."""
    ends = np.ones((len(scores), 1))
    below = expit(thresholds - scores[:, None])
    return np.diff(np.hstack([0 * ends, below, ends]), axis=1)


def _thresholds(free: Floats) -> Floats:
    """The first threshold, then the logarithms of the steps up: thresholds in order."""
    return free[0] + np.concatenate([[0.0], np.cumsum(np.exp(free[1:]))])


def _loss(
    free: Floats, columns: sparse.csr_matrix, levels: npt.NDArray[np.integer], count: int, strength: float
) -> tuple[float, Floats]:
    """The loss and its gradient by slope, first threshold and logarithms of steps."""
    slope, steps = free[: columns.shape[1]], free[columns.shape[1] :]
    thresholds, rows = _thresholds(steps), np.arange(len(levels))
    below = np.hstack([np.zeros((len(levels), 1)), expit(thresholds - (columns @ slope)[:, None])])
    below = np.hstack([below, np.ones((len(levels), 1))])
    density = below * (1 - below)
    chance = np.maximum(below[rows, levels + 1] - below[rows, levels], _SMALLEST)
    upper, lower = density[rows, levels + 1] / chance, density[rows, levels] / chance
    by_edge = np.bincount(levels, lower, count + 1) - np.bincount(levels + 1, upper, count + 1)
    by_threshold = by_edge[1:-1]
    by_steps = np.cumsum(by_threshold[::-1])[::-1].copy()
    by_steps[1:] *= np.exp(steps[1:])
    loss = -np.log(chance).sum() + slope @ slope / (2 * strength)
    return float(loss), np.concatenate([columns.T @ (upper - lower) + slope / strength, by_steps])
