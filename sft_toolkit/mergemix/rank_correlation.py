"""Rank correlation and how far it can be trusted: interval, chance, noise."""

from __future__ import annotations

from functools import cache
from itertools import permutations
from math import asin, atanh, factorial, pi, sqrt, tanh
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sft_toolkit.mergemix.student import student_95

Floats = NDArray[np.float64]

FEWEST_FOR_INTERVAL = 5
_ENUMERATED = 7
"""Up to this many pairs all orders are tried; 7! = 5,040."""


class Interval(NamedTuple):
    """Both ends belong to it."""

    low: float
    high: float


def average_ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs: average_ranks([5, 7, 5]) = [1.5, 3, 1.5]."""
    return _ranks_in_samples(values, np.ones((1, values.size)))[0]


def spearman(x: Floats, y: Floats) -> float:
    """Pearson correlation of average ranks; NaN where either side is constant."""
    return float(_correlation(average_ranks(x), average_ranks(y)))


def spearman_interval(rho: float, n: int) -> Interval | None:
    """The 95% interval of the correlation behind a rho of n pairs; None below 5 pairs, or where rho is NaN.

    Bonett & Wright 2000, "Sample size requirements for estimating Pearson, Kendall and Spearman correlations": on the
    scale of atanh the variance is (1 + rho^2 / 2) / (n - 3). With the quantile of t at n - 2 for the normal one it
    covers 95% or more in simulations from 5 pairs on, where bootstrap percentiles cover as little as 64% (5 pairs) or
    78% (6 pairs; benchmarks/mergemix_statistics.py). Perfect agreement has no atanh: the next lower rho stands for it.
    """
    if n < FEWEST_FOR_INTERVAL or np.isnan(rho):
        return None
    largest = 1 - 12 / (n * (n * n - 1))
    centre = atanh(max(-largest, min(largest, rho)))
    half = student_95(n - 2) * sqrt((1 + min(abs(rho), largest) ** 2 / 2) / (n - 3))
    low, high = tanh(centre - half), tanh(centre + half)
    return Interval(-1.0 if rho < -largest else low, 1.0 if rho > largest else high)


def permutation_probability(x: Floats, y: Floats, draws: int, seed: int) -> float:
    """How often a random order of y gives an |rho| as large as that of x and y. Exact up to 7 pairs."""
    ranks_x, ranks_y = average_ranks(x), average_ranks(y)
    observed = abs(_correlation(ranks_x, ranks_y))
    if np.isnan(observed):
        return 1.0
    if x.size <= _ENUMERATED:
        orders = np.array(list(permutations(ranks_y)))
        extra, total = 0, factorial(x.size)
    else:
        orders = _shuffled(ranks_y, draws, seed)
        extra, total = 1, draws + 1
    as_large = np.abs(_correlation(orders, ranks_x)) >= observed - 1e-12
    return float((np.count_nonzero(as_large) + extra) / total)


@cache
def null_band(n: int, draws: int = 20_000, seed: int = 0, level: float = 0.95) -> float:
    """The |rho| that unrelated scores of n candidates stay below in `level` of cases: 0.65 for 10, 0.25 for 64."""
    ranks = np.arange(1, n + 1, dtype=np.float64)
    return float(np.quantile(np.abs(_correlation(_shuffled(ranks, draws, seed), ranks)), level))


def noise_ceiling(n: int, reliability_x: float, reliability_y: float) -> float:
    """The mean rho of n candidates where both scores measure the same thing, each with normal noise of its own.

    Reliability is the share of a score's variance that is not noise. Where noise is half of both (scores spread as much
    as they waver), a perfect proxy reaches 0.46 with 16 candidates. Moran 1948, "Rank correlation and product-moment
    correlation": E[rho] = 6 / (pi (n + 1)) * (asin r + (n - 2) asin(r / 2)).
    """
    correlation = sqrt(reliability_x * reliability_y)
    return 6 / (pi * (n + 1)) * (asin(correlation) + (n - 2) * asin(correlation / 2))


def _ranks_in_samples(values: Floats, counts: Floats) -> Floats:
    """Ranks of each value in samples in which it occurs as often as `counts`, float64[samples, n], says."""
    distinct, place = np.unique(values, return_inverse=True)
    occurrences = counts @ (place[:, None] == np.arange(distinct.size))
    ranks = occurrences.cumsum(axis=1) - (occurrences - 1) / 2
    return ranks[:, place]


def _shuffled(ranks: Floats, draws: int, seed: int) -> Floats:
    generator = np.random.RandomState(seed)
    return ranks[generator.random_sample((draws, ranks.size)).argsort(axis=1)]


def _correlation(x: Floats, y: Floats, counts: Floats | float = 1.0) -> Floats:
    """Pearson correlation along the last axis, each pair `counts` times; NaN where a side is constant."""
    pairs = counts * np.ones_like(x)
    x, y = (side - ((pairs * side).sum(-1) / pairs.sum(-1))[..., None] for side in (x, y))
    with np.errstate(invalid="ignore", divide="ignore"):
        return (pairs * x * y).sum(-1) / np.sqrt((pairs * x * x).sum(-1) * (pairs * y * y).sum(-1))
