"""How well graders agree on ordered levels (exact, within one, quadratic weighted kappa, confusion, majority), and
whether their probabilities are true: the calibration error, and the temperature that corrects it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Levels = npt.NDArray[np.integer]
Chances = npt.NDArray[np.float64]

_BINS = 10
_SMALLEST = 1e-9
_LARGEST_LOG = float(np.log(100))


@dataclass(frozen=True)
class Agreement:
    """Two graders on the same prompts. confusion: int64[true, given], prompts by the two levels."""

    confusion: npt.NDArray[np.int64]

    @property
    def prompts(self) -> int:
        return int(self.confusion.sum())

    @property
    def exact(self) -> float:
        """Share of prompts with the same level."""
        return float(np.trace(self.confusion) / self.prompts)

    @property
    def within_one(self) -> float:
        """Share of prompts whose levels differ by one at most."""
        return float(self.confusion[self._distance <= 1].sum() / self.prompts)

    @property
    def majority(self) -> float:
        """`exact` of a grader that always gives the commonest true level."""
        return float(self.confusion.sum(axis=1).max() / self.prompts)

    @cached_property
    def kappa(self) -> float:
        """Quadratic weighted kappa (Cohen 1968): 1 - observed / expected squared distance; 0 is chance.

        nan where each grader gives one level only, the same: there is nothing to expect.
        """
        weights = self._distance.astype(float) ** 2
        rows, columns = self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        expected = (weights * np.outer(rows, columns)).sum() / self.prompts
        return float(1 - (weights * self.confusion).sum() / expected) if expected else float("nan")

    @property
    def _distance(self) -> npt.NDArray[np.int64]:
        places = np.arange(len(self.confusion))
        return np.abs(places[:, None] - places)


def agreement(true: Levels, given: Levels, levels: int) -> Agreement:
    """Compare grades. true, given: int[n], 0 … levels - 1. Raises ValueError where there is none to compare."""
    if not len(true):
        raise ValueError("no prompts to compare")
    cells = np.bincount(true * levels + given, minlength=levels * levels)
    return Agreement(cells.reshape(levels, levels).astype(np.int64))


def calibration_error(true: Levels, chances: Chances) -> float:
    """Expected calibration error (Naeini et al. 2015): |confidence - share that is right|, averaged over the prompts.

    Confidences, the largest chance of each prompt, fall in ten bins of equal width. true: int[n]; chances:
    float64[n, levels].
    """
    confidence, right = chances.max(axis=1), chances.argmax(axis=1) == true
    bins = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    gaps = np.bincount(bins, confidence - right, _BINS)
    return float(np.abs(gaps).sum() / len(true))


def fitted_temperature(true: Levels, chances: Chances) -> float:
    """The temperature at which the chances make the true levels likeliest (Guo et al. 2017), from 0.01 to 100."""
    from scipy.optimize import minimize_scalar

    rows, logs = np.arange(len(true)), np.log(np.maximum(chances, _SMALLEST))

    def loss(log_temperature: float) -> float:
        scores = logs / np.exp(log_temperature)
        return float((np.logaddexp.reduce(scores, axis=1) - scores[rows, true]).mean())

    found = minimize_scalar(loss, bounds=(-_LARGEST_LOG, _LARGEST_LOG), method="bounded")
    return float(np.exp(found.x))


def tempered(chances: Chances, temperature: float | Chances) -> Chances:
    """chances ** (1 / temperature), each row of sum 1; the likeliest level stays the same.

    temperature: one for all, or float64[n, 1].
    """
    with np.errstate(divide="ignore"):
        scores = np.log(chances) / temperature
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)
