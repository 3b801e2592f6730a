"""Whether a model obeys its effort: lengths of reasoning at each level, and how prompts order them.

The unit is the prompt: samples of one prompt at one level go together, as their median. Intervals are of 95%: that of a
median lies between two order statistics (no shape of the lengths is assumed), that of a share is Wilson's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sft_toolkit.labelers.wilson import wilson_interval

Floats = npt.NDArray[np.float64]
REASONING_LEVELS = ("low", "medium", "high")
_OUTSIDE = 0.025


class Interval(NamedTuple):
    """Both ends belong to it."""

    low: float
    high: float


class Estimate(NamedTuple):
    """`interval` is None where there are too few values for one of 95%."""

    value: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Obedience:
    """What the prompts say that were answered at low, medium and high.

    `ordered` of `prompts` have low < medium < high; one in six would have by chance. `ratio` is the median over prompts
    of length at high / length at low, over the `compared` ones whose length at low is above 0.
    """

    prompts: int
    ordered: int
    compared: int
    ratio: Estimate | None

    @property
    def ordered_interval(self) -> Interval | None:
        return Interval(*wilson_interval(self.ordered, self.prompts)) if self.prompts else None


def median(values: Sequence[float] | Floats) -> Estimate:
    """The median and the interval of order statistics that holds the true one with 95% or more; None below 6 values.

    With x(1) <= ... <= x(n), the interval is x(k) to x(n + 1 - k) for the largest k with P(Binomial(n, 1/2) < k) at
    most .025.

    >>> median(range(1, 11))
    Estimate(value=5.5, interval=Interval(low=2.0, high=9.0))
    """
    ordered = np.sort(np.asarray(values, float))
    n = ordered.size
    below = outside = 0
    while (outside := outside + comb(n, below)) <= _OUTSIDE * 2**n:
        below += 1
    interval = Interval(float(ordered[below - 1]), float(ordered[n - below])) if below else None
    return Estimate(float(np.median(ordered)), interval)


def obedience(by_level: Mapping[str, Mapping[str, Sequence[float]]]) -> Obedience:
    """Compare the levels; `by_level` holds the lengths of each prompt's samples, by level and prompt."""
    medians = {
        level: {prompt: float(np.median(lengths)) for prompt, lengths in by_level.get(level, {}).items()}
        for level in REASONING_LEVELS
    }
    low, medium, high = (medians[level] for level in REASONING_LEVELS)
    all_three = low.keys() & medium.keys() & high.keys()
    ordered = sum(low[prompt] < medium[prompt] < high[prompt] for prompt in all_three)
    ratios = [high[prompt] / low[prompt] for prompt in sorted(low.keys() & high.keys()) if low[prompt] > 0]
    return Obedience(len(all_three), ordered, len(ratios), median(ratios) if ratios else None)
