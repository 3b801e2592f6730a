"""The orders of packed sequences that a trainer can choose from, by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sft_toolkit.packers.balance import Balance, balance_of
from sft_toolkit.packers.plan import Plan, random_order
from sft_toolkit.packers.sorted_buffer import sorted_buffer
from sft_toolkit.packers.window_plan import window_plan, within_step

ORDERS = ("window", "sorted-buffer", "within-step", "random")
AUTO = "auto"
MOST_DEFF = 2.0
"""The greatest design effect that `choose_order` accepts: a batch says as much as a random one of half its size."""


@dataclass(frozen=True, slots=True)
class OrderChoice:
    """The order that was chosen, and the figures of every order that was compared, by name."""

    order: str
    figures: dict[str, Balance]

    def __str__(self) -> str:
        """One line: what was chosen, and the figures of all."""
        compared = ", ".join(
            f"{name} {found.efficiency:.3f} / {found.deff:.2f}" for name, found in self.figures.items()
        )
        return f"{self.order}: the most efficient with deff at most {MOST_DEFF:g} (efficiency / deff: {compared})"


def choose_order(
    tokens: NDArray[np.integer],
    costs: NDArray[np.int64],
    ranks: int,
    microbatches: int = 1,
    *,
    buffer: int = 256,
    seed: int = 0,
    attention_share: float = 0.5,
) -> OrderChoice:
    """The most efficient order whose steps are still random enough, by simulating the first epoch of each.

    Random enough is a design effect of at most MOST_DEFF. It is what few microbatches cost: a balanced microbatch holds
    sequences of one cost, and a step of one microbatch is then all long or all short. Random order is always admitted,
    and so is one whose design effect cannot be estimated (fewer than two whole steps). Efficiencies are compared to
    three digits; of equal ones the first in ORDERS is taken.

    tokens, costs: int[n] of each packed sequence; attention_share: as in `balance_of`
    """
    figures = {
        order: balance_of(
            plan_for(order, costs, ranks, microbatches, buffer=buffer, seed=seed).epoch(0),
            tokens,
            costs,
            attention_share=attention_share,
        )
        for order in ORDERS
    }
    admitted = [name for name, found in figures.items() if name == "random" or not found.deff > MOST_DEFF]
    return OrderChoice(max(admitted, key=lambda name: round(figures[name].efficiency, 3)), figures)


def plan_for(
    order: str, costs: ArrayLike, ranks: int, microbatches: int = 1, *, buffer: int = 256, seed: int = 0
) -> Plan:
    """The plan called `order`. Raises ValueError for a name that is not in ORDERS."""
    match order:
        case "window":
            return window_plan(costs, ranks, microbatches, buffer=buffer, seed=seed)
        case "sorted-buffer":
            return sorted_buffer(costs, ranks, microbatches, buffer=buffer, seed=seed)
        case "within-step":
            return within_step(costs, ranks, microbatches, seed=seed)
        case "random":
            return random_order(costs, ranks, microbatches, seed=seed)
    raise ValueError(f"no order is called {order!r}; choose from {', '.join(ORDERS)}")
