"""What each rank reads at each step: a plan of packed sequences, dealt to the ranks that are there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sft_toolkit.errors import UsageError
from sft_toolkit.packers import FILLER, Plan
from sft_toolkit.packers.balance import DataSetMix
from sft_toolkit.shards.packed_index import PackedIndex


class Order:
    """Steps of all epochs, counted through; a pure function of the plan, the step and the number of ranks.

    The plan keeps the ranks that the run began with, and so every step its sequences, whatever ranks it is resumed on;
    where these do not divide a step, its last microbatch is filled up with FILLER.

    whole: without the last step of an epoch where the plan lacks sequences for it; first: steps of the plan that an
    earlier run has done
    """

    def __init__(self, plan: Plan, ranks: int, *, whole: bool = False, first: int = 0) -> None:
        self._plan = plan
        self._ranks = ranks
        self._first = first
        self.steps_per_epoch = steps_of_epoch(plan, whole=whole)

    def step(self, step: int) -> NDArray[np.int64]:
        """Numbers of sequences: int64[microbatches, ranks]."""
        epoch, within = divmod(self._first + step, self.steps_per_epoch)
        sequences = self._plan.step(epoch, within).ravel()
        lacking = -len(sequences) % self._ranks
        return np.append(sequences, np.full(lacking, FILLER)).reshape(-1, self._ranks)


def steps_of_epoch(plan: Plan, *, whole: bool) -> int:
    """Steps of an epoch; `whole`: those alone that no FILLER is in. Raises UsageError where none is left."""
    if whole and not plan.whole_steps:
        raise UsageError("`drop_last`: there are fewer sequences than a step takes", "use fewer microbatches or ranks")
    return plan.whole_steps if whole else plan.steps


class Figures:
    """Sums over the sequences of a step, from the index: every rank knows them of all ranks without asking.

    flops: float64[n], of each sequence
    """

    def __init__(self, index: PackedIndex, flops: NDArray[np.float64]) -> None:
        self._tokens, self._loss_tokens, self._flops = (
            np.append(column, 0) for column in (index.tokens, index.loss_tokens, flops)
        )
        self.datasets = index.datasets if len(index.datasets) > 1 else []
        if self.datasets:
            self._mix, shares = index.mix, index.shares
            self._trained = DataSetMix(index.mix.offsets, index.mix.datasets, shares.loss_tokens)

    def tokens(self, sequences: NDArray[np.int64]) -> int:
        return int(self._tokens[sequences].sum())

    def loss_tokens(self, sequences: NDArray[np.int64]) -> int:
        return int(self._loss_tokens[sequences].sum())

    def tokens_by_dataset(self, sequences: NDArray[np.int64]) -> NDArray[np.float64]:
        """float64[data sets]; empty where there is one alone."""
        read = sequences[sequences != FILLER]
        return self._mix.of(read[None])[0] if self.datasets else np.zeros(0)

    def by_dataset(self, sequences: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum a value of each sequence over the data sets, by their share of its loss tokens: float64[data sets].

        sequences: int64[n]; values: float64[n]. Exact for sequences of one data set.
        """
        if not self.datasets:
            return np.zeros(0)
        real = sequences != FILLER
        trained = self._trained.of(sequences[real, None])
        return values[real] @ (trained / np.maximum(1, trained.sum(axis=1, keepdims=True)))

    def loss_tokens_by_dataset(self, sequences: NDArray[np.int64]) -> NDArray[np.float64]:
        """float64[data sets]; empty where there is one alone."""
        read = sequences[sequences != FILLER]
        return self._trained.of(read[None])[0] if self.datasets else np.zeros(0)

    def flops(self, sequences: NDArray[np.int64]) -> float:
        return float(self._flops[sequences].sum())

    def imbalance(self, sequences: NDArray[np.int64]) -> float:
        """Work of the busiest rank of each microbatch over that of the mean rank, 1 where all have the same.

        sequences: int64[microbatches, ranks]
        """
        work = self._flops[sequences]
        return float(work.max(axis=1).sum() / work.mean(axis=1).sum())
