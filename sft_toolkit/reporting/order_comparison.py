"""What an order of packed sequences over ranks and steps is worth on this data: the comparison that `plan` prints."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sft_toolkit.errors import UsageError
from sft_toolkit.packers import FILLER, Plan, random_order, sorted_buffer, window_plan, within_step
from sft_toolkit.packers.balance import Balance, balance_of
from sft_toolkit.shards.packed_index import PackedIndex, read_index
from sft_toolkit.shards.shard_folder import ShardFolder


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """`buffer` counts sequences per rank; `attention_share` is the part of a mean sequence's time that C explains."""

    ranks: int
    microbatches: int
    buffer: int = 256
    attention_share: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.attention_share <= 1:
            raise UsageError(f"`attention_share` {self.attention_share}: not a share", "give a number from 0 to 1")


@dataclass(frozen=True, slots=True)
class OrderFigures:
    """One order: its balance, and each data set's share of the tokens of an epoch's first step."""

    order: str
    balance: Balance
    step_mix: list[float]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Orders over one packed folder, random order first.

    steps: optimiser steps in an epoch; filler: places in them that no sequence takes
    datasets: names; mix: each one's share of all tokens
    """

    options: PlanOptions
    sequences: int
    steps: int
    filler: int
    datasets: list[str]
    mix: list[float]
    orders: list[OrderFigures]

    def speed_up(self, figures: OrderFigures) -> float:
        """Tokens per second beside random order."""
        return figures.balance.throughput / self.orders[0].balance.throughput

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self.options),
            "sequences": self.sequences,
            "steps": self.steps,
            "filler": self.filler,
            "mix": dict(zip(self.datasets, self.mix, strict=True)),
            "orders": [self._order_json(figures) for figures in self.orders],
        }

    def _order_json(self, figures: OrderFigures) -> dict[str, Any]:
        return {
            "order": figures.order,
            "efficiency": figures.balance.efficiency,
            "speed_up": self.speed_up(figures),
            "deff": known(figures.balance.deff),
            "total_variation": known(figures.balance.total_variation),
            "step_mix": dict(zip(self.datasets, figures.step_mix, strict=True)),
        }


def known(figure: float) -> float | None:
    """None for a figure that too few data cannot estimate."""
    return None if math.isnan(figure) else figure


def compare_orders(folder: Path, options: PlanOptions) -> Comparison:
    """Simulate one epoch of each order over a packed folder. Raises ToolkitError where the folder is unfit."""
    ShardFolder(folder, "packed")
    index = read_index(folder)
    epochs = {order: plan.epoch(0) for order, plan in _plans(index.cost, options).items()}
    steps = len(epochs["random"])
    return Comparison(
        options=options,
        sequences=len(index.cost),
        steps=steps,
        filler=steps * options.ranks * options.microbatches - len(index.cost),
        datasets=index.datasets,
        mix=_shares(index, np.arange(len(index.cost))),
        orders=[
            OrderFigures(
                order,
                balance_of(epoch, index.tokens, index.cost, index.mix, options.attention_share),
                _shares(index, epoch[0].ravel()),
            )
            for order, epoch in epochs.items()
        ],
    )


def _plans(costs: NDArray[np.int64], options: PlanOptions) -> dict[str, Plan]:
    shape = (costs, options.ranks, options.microbatches)
    buffer, seed = options.buffer, options.seed
    return {
        "random": random_order(*shape, seed=seed),
        "sorted-buffer": sorted_buffer(*shape, buffer=buffer, seed=seed),
        "within-step": within_step(*shape, seed=seed),
        "window, undealt": window_plan(*shape, buffer=buffer, deal=False, seed=seed),
        "window": window_plan(*shape, buffer=buffer, seed=seed),
    }


def _shares(index: PackedIndex, sequences: NDArray[np.int64]) -> list[float]:
    """Each data set's share of the tokens of these sequences, filler left out."""
    tokens = index.mix.of(sequences[sequences != FILLER][np.newaxis])[0]
    return (tokens / tokens.sum()).tolist()
