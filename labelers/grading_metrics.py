"""How well graders agree on ordered levels: exact, within one, quadratic weighted kappa, confusion, majority."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Levels = npt.NDArray[np.integer]


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
