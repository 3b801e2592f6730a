"""How good a plan is: how long ranks wait for one another, and how random the batches still are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sft_toolkit.packers.plan import FILLER


@dataclass(frozen=True, slots=True)
class DataSetMix:
    """Which data sets the tokens of each sequence come from, in compressed row form.

    offsets: int64[sequences + 1]; datasets: int[entries], codes from 0; tokens: int[entries]
    """

    offsets: NDArray[np.int64]
    datasets: NDArray[np.integer]
    tokens: NDArray[np.integer]

    def of(self, groups: NDArray[np.int64]) -> NDArray[np.float64]:
        """Tokens per data set in each group of sequences: float64[groups, data sets]. groups: int64[groups, size]."""
        counts = np.diff(self.offsets)[groups.ravel()]
        group_of = np.repeat(np.repeat(np.arange(len(groups)), groups.shape[1]), counts)
        first = np.repeat(self.offsets[groups.ravel()] - np.cumsum(counts) + counts, counts)
        entries = first + np.arange(len(first))
        width = int(self.datasets.max()) + 1
        cells = group_of * width + self.datasets[entries]
        sums = np.zeros(len(groups) * width)
        np.add.at(sums, cells, self.tokens[entries])
        return sums.reshape(len(groups), width)


@dataclass(frozen=True, slots=True)
class Balance:
    """A plan's figures.

    efficiency: mean over microbatches of (mean / greatest cost of the ranks): the share of time that ranks compute
    throughput: tokens per unit of simulated time over all ranks; means something only beside another plan's
    deff: design effect, n Var(step's mean C) / Var(C) with n sequences per step: 1 as if drawn independently, n all
        alike, below 1 more even than chance; NaN where it cannot be estimated (fewer than two whole steps, equal costs)
    total_variation: mean distance, 0 … 1, between a step's data set mix and that of all data; NaN where no mix is given
    """

    efficiency: float
    throughput: float
    deff: float
    total_variation: float


def balance_of(
    steps: NDArray[np.int64],
    tokens: NDArray[np.integer],
    costs: NDArray[np.int64],
    mix: DataSetMix | None = None,
    attention_share: float = 0.5,
) -> Balance:
    """Simulate a plan: ranks wait for the slowest after every microbatch.

    A sequence takes (1 - a) * tokens / mean(tokens) + a * C / mean(C) units of time, a being `attention_share`.
    steps: int64[steps, microbatches, ranks], at least one step, FILLER allowed; tokens, costs: int64[n]
    """
    time = (1 - attention_share) * tokens / tokens.mean() + attention_share * costs / costs.mean()
    rank_time = np.append(time, 0.0)[steps]
    slowest = rank_time.max(axis=2)
    busy = slowest > 0
    batches = steps.reshape(len(steps), -1)
    whole = batches[(batches != FILLER).all(axis=1)]
    return Balance(
        efficiency=float((rank_time.mean(axis=2)[busy] / slowest[busy]).mean()),
        throughput=float(np.append(tokens, 0)[steps].sum() / slowest.sum()),
        deff=_design_effect(costs[whole], costs),
        total_variation=_total_variation(whole, mix) if mix else float("nan"),
    )


def _design_effect(step_costs: NDArray[np.int64], costs: NDArray[np.int64]) -> float:
    variance = costs.var()
    if len(step_costs) < 2 or not variance:
        return float("nan")
    return float(step_costs.shape[1] * step_costs.mean(axis=1).var() / variance)


def _total_variation(whole: NDArray[np.int64], mix: DataSetMix) -> float:
    if not len(whole):
        return float("nan")
    per_step = mix.of(whole)
    overall = np.bincount(mix.datasets, weights=mix.tokens)
    shares = per_step / per_step.sum(axis=1, keepdims=True)
    return float(0.5 * np.abs(shares - overall / overall.sum()).sum(axis=1).mean())
