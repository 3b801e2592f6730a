"""Orders of packed sequences over 64 ranks, simulated, and what it costs to plan them.

    python benchmarks/balance.py

The lengths are those of length_streams.py. A sequence's time is half its share of tokens, half its share of attention
cost; ranks wait for the slowest after each microbatch. Speed-ups stand beside random order; a global sort by cost is
the bound.
"""

from __future__ import annotations

import time

import numpy as np
from length_streams import CAPACITY, draw

from sft_toolkit.packers import (
    Plan,
    next_k_fit,
    random_order,
    sorted_buffer,
    window_plan,
    within_step,
)
from sft_toolkit.packers.attention_cost import attention_costs
from sft_toolkit.packers.balance import DataSetMix, balance_of

RANKS, MICROBATCHES = 64, 8
DOCUMENTS = {"short": 6_000_000}
SCALE = 1_280_000


def plans(costs: np.ndarray) -> dict[str, Plan]:
    shape = (costs, RANKS, MICROBATCHES)
    everything = len(costs) // RANKS
    return {
        "random": random_order(*shape),
        "within-step": within_step(*shape),
        "sorted-buffer, 256": sorted_buffer(*shape),
        "window, 64": window_plan(*shape, buffer=64),
        "window, 256, undealt": window_plan(*shape, deal=False),
        "window, 256": window_plan(*shape),
        "global sort": window_plan(*shape, buffer=everything, deal=False),
    }


def compare(lengths: np.ndarray, datasets: np.ndarray) -> None:
    packing = next_k_fit(lengths, CAPACITY)
    costs, tokens = attention_costs(lengths, packing), packing.sums(lengths)
    mix = DataSetMix(packing.offsets, datasets[packing.documents], lengths[packing.documents])
    baseline = 0.0
    for name, plan in plans(costs).items():
        found = balance_of(plan.epoch(0), tokens, costs, mix)
        baseline = baseline or found.throughput
        speed_up = found.throughput / baseline
        print(f"{name:24}{found.efficiency:10.3f}{speed_up:10.2f}{found.deff:10.2f}{found.total_variation:10.3f}")


def cost_of_planning() -> None:
    costs = np.exp(np.random.default_rng(0).normal(22, 1, SCALE)).astype(np.int64)
    plan = window_plan(costs, RANKS, MICROBATCHES)
    begin = time.perf_counter()
    plan.step(0, 0)
    first = time.perf_counter()
    plan.step(0, plan.window_steps)
    print(
        f"\n{SCALE:,} sequences: first step of an epoch {first - begin:.3f} s, "
        f"each further window of {plan.window_steps} steps {time.perf_counter() - first:.4f} s"
    )


def main() -> None:
    for kind in ("even", "short", "long"):
        print(f"\n{kind:24}{'efficient':>10}{'x random':>10}{'deff':>10}{'mix':>10}")
        compare(*draw(DOCUMENTS.get(kind, 1_000_000), kind))
    cost_of_planning()


if __name__ == "__main__":
    main()
