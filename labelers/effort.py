"""Soft effort labels from reasoning lengths (Kolibri post-training report, soft effort labels).

A length L, in tokens, is placed in the unit interval between two edges of its reference group, the 30th and 70th
percentile of the group's lengths. Low, medium and high each hold a normal bump over that interval; the label is drawn
in proportion to the bumps. An exchange without reasoning (L = 0) is `none` and takes no part in the edges.

A group is a data set and a difficulty. Where it is too small, its data set stands in for it, and where that is too
small, the data set's median with the spread that lengths have around medians elsewhere: lengths of other data sets say
how far lengths spread, never how long they are, since medians of data sets differ by four orders of magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]

LEVELS = ("none", "low", "medium", "high")
PERCENTILES = (30, 70)
BETA = 0.15
CENTRES = np.array([0.15, 0.50, 0.85])
WIDTHS = np.array([0.3, 0.4, 0.3])

MIN_GROUP = 20
"""Reasoned exchanges that a group, or a data set, needs for edges of its own."""

FALLBACK: Mapping[str, tuple[str, ...]] = {
    "group": ("dataset", "difficulty"),
    "dataset": ("dataset",),
    "median": ("dataset",),
    "all": (),
}
"""Where edges are looked up, first to last, and the columns that make the key there.

`median`: the median of a small data set's own lengths with the pooled spread; `all`: for data sets that the fit saw
no reasoning of.
"""


class Edges(NamedTuple):
    """30th and 70th percentile of `n` reasoning lengths, in tokens."""

    n: int
    l30: float
    l70: float

    @property
    def degenerate(self) -> bool:
        """True where there is no interval between the edges to place a length in."""
        return self.l30 == self.l70


@dataclass(frozen=True)
class EdgeTable:
    """Edges by level of `FALLBACK` and by key there.

    Of groups and data sets those with fewer than `min_group` exchanges are listed, and passed over.
    """

    levels: Mapping[str, Mapping[tuple[str, ...], Edges]]
    min_group: int = MIN_GROUP

    def find(self, dataset: str, difficulty: str) -> tuple[str, Edges]:
        """The level and edges that hold for a group. Raises LookupError where the fit saw no reasoning at all."""
        values = {"dataset": dataset, "difficulty": difficulty}
        for level, columns in FALLBACK.items():
            edges = self.levels[level].get(tuple(values[column] for column in columns))
            if edges is not None and (edges.n >= self.min_group or level in ("median", "all")):
                return level, edges
        raise LookupError("the fit saw no exchange with reasoning")


def fit(histogram: pl.DataFrame, min_group: int = MIN_GROUP) -> EdgeTable:
    """Edges of all groups at all levels.

    `histogram` has the columns dataset, difficulty (text), length (whole tokens, above 0) and count; rows may repeat.
    """
    ordered = histogram.sort("length")
    parts = {level: _parts(FALLBACK[level], ordered) for level in ("group", "dataset", "all")}
    levels = {level: {key: part.edges for key, part in found.items()} for level, found in parts.items()}
    return EdgeTable({**levels, "median": _around_medians(parts["dataset"], min_group)}, min_group)


@dataclass(frozen=True)
class _Lengths:
    """The lengths of one group. `values`: int[k], ascending; `counts`: int[k], how often each occurs."""

    values: npt.NDArray[np.integer]
    counts: npt.NDArray[np.integer]

    @property
    def edges(self) -> Edges:
        l30, l70 = (self.percentile(percent) for percent in PERCENTILES)
        return Edges(self.n, l30, l70)

    @property
    def n(self) -> int:
        return int(self._ends[-1])

    def percentile(self, percent: int) -> float:
        """By linear interpolation; in whole numbers up to the last division, so that ties stay exact."""
        return _percentile(percent, self.values, self._ends)

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        return self.counts.cumsum(dtype=np.int64)


def _parts(columns: tuple[str, ...], ordered: pl.DataFrame) -> dict[tuple[str, ...], _Lengths]:
    if ordered.is_empty():
        return {}
    parts = ordered.partition_by(columns, as_dict=True, maintain_order=True) if columns else {(): ordered}
    return {key: _Lengths(part["length"].to_numpy(), part["count"].to_numpy()) for key, part in parts.items()}


def _around_medians(datasets: Mapping[tuple[str, ...], _Lengths], min_group: int) -> dict[tuple[str, ...], Edges]:
    """Edges of each data set with fewer than `min_group` exchanges: its median, times the pooled spread.

    The spread is that of log(length / median of its data set), in exchanges, over the data sets that are not small, or
    over all where all are. No edge is below 1 token.
    """
    small = {key: part for key, part in datasets.items() if part.n < min_group}
    if not small:
        return {}
    pool = [part for key, part in datasets.items() if key not in small] or list(small.values())
    spread = np.concatenate([np.log(part.values / part.percentile(50)) for part in pool])
    order = spread.argsort()
    ends = np.concatenate([part.counts for part in pool])[order].cumsum(dtype=np.int64)
    low, high = (math.exp(_percentile(percent, spread[order], ends)) for percent in PERCENTILES)
    medians = {key: part.percentile(50) for key, part in small.items()}
    return {key: Edges(small[key].n, *(max(1.0, m * factor) for factor in (low, high))) for key, m in medians.items()}


def _percentile(percent: int, values: npt.NDArray[Any], ends: npt.NDArray[np.int64]) -> float:
    """`values`: number[k], ascending; `ends`: int64[k], how many of the sample lie up to each, the last one all."""
    last = int(ends[-1]) - 1
    rank, hundredths = divmod(percent * last, 100)
    below, above = (values[np.searchsorted(ends, r, side="right")].item() for r in (rank, min(rank + 1, last)))
    return (below * (100 - hundredths) + above * hundredths) / 100


def label(lengths: npt.NDArray[np.integer], l30: Floats, l70: Floats, uniforms: Floats) -> npt.NDArray[np.int8]:
    """Draw the label of each exchange, as an index into LEVELS: int8[n].

    `lengths`: int[n], tokens; `l30`, `l70`: float64[n], edges of each one's group (ignored where L = 0);
    `uniforms`: float64[n] in [0, 1). Raises ValueError for a length below 0.
    """
    if (lengths < 0).any():
        raise ValueError("a reasoning length is negative")
    levels = np.zeros(len(lengths), np.int8)
    reasoned = lengths > 0
    places = place(lengths[reasoned], l30[reasoned], l70[reasoned])
    levels[reasoned] = draw(probabilities(places), uniforms[reasoned])
    return levels


def place(lengths: npt.NDArray[np.integer], l30: Floats, l70: Floats) -> Floats:
    """u = clip(0.3 + 0.4 (log L - log l30) / (log l70 - log l30), 0, 1): float64[n].

    `lengths`: int[n], above 0. Where l30 = l70, the limit: 0 below, 0.5 at, 1 above them.
    """
    low, high = (percent / 100 for percent in PERCENTILES)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (np.log(lengths) - np.log(l30)) / (np.log(l70) - np.log(l30))
    return np.where((lengths == l30) & (lengths == l70), 0.5, np.clip(low + (high - low) * share, 0.0, 1.0))


def probabilities(places: Floats, beta: float = BETA) -> Floats:
    """P(low), P(medium), P(high) ~ exp(-1/2 ((u - m) / (beta w))^2) for each u in `places`: float64[3, n].

    The least exponent is taken off before it is divided by beta, so that the largest weight is 1 however small beta.
    """
    squares = ((places - CENTRES[:, None]) / WIDTHS[:, None]) ** 2
    excess = squares - squares.min(axis=0)
    with np.errstate(over="ignore"):
        weights = np.exp(-0.5 * (excess / beta / beta))
    return weights / weights.sum(axis=0)


def draw(chances: Floats, uniforms: Floats) -> npt.NDArray[np.int8]:
    """Draw one level per column of `chances` (float64[3, n]) by one uniform each: int8[n], an index into LEVELS."""
    low, _, high = chances
    return np.where(uniforms < low, 1, np.where(uniforms < 1.0 - high, 2, 3)).astype(np.int8)
