"""The orders of packed sequences that a trainer can choose from, by name."""

from __future__ import annotations

from numpy.typing import ArrayLike

from sft_toolkit.packers.plan import Plan, random_order
from sft_toolkit.packers.sorted_buffer import sorted_buffer
from sft_toolkit.packers.window_plan import window_plan, within_step

ORDERS = ("window", "sorted-buffer", "within-step", "random")


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
