"""Orders of packed sequences at few microbatches: efficiency and design effect over ranks and microbatches.

    python benchmarks/orders.py [--kinds even short long] [--documents N] [--ranks 8 64 512]

Streams are those of length_streams.py, packed to 262,144 tokens; attention is half of the mean step's time. `bound` is
the least design effect of any order whose microbatches hold sequences of one cost: a microbatch that costs more than a
step's share of all cost cannot be balanced by the other microbatches of its step.
"""

from __future__ import annotations

import argparse

import numpy as np
from length_streams import CAPACITY, draw
from numpy.typing import NDArray

from sft_toolkit.packers import next_k_fit
from sft_toolkit.packers.attention_cost import attention_costs
from sft_toolkit.packers.balance import balance_of
from sft_toolkit.packers.orders import ORDERS, plan_for

DOCUMENTS = {"even": 4_000_000, "short": 20_000_000, "long": 2_000_000}
RANKS, MICROBATCHES = (8, 64, 512), (1, 2, 4, 8, 16)


def least_design_effect(costs: NDArray[np.int64], ranks: int, microbatches: int) -> float:
    """Steps are as even as can be where what exceeds a step's mean cost is a step's one expensive microbatch.

    costs: int64[n]. Groups of `ranks` neighbours by cost are the microbatches; a step that holds one of cost q has at
    least q / microbatches as its mean.
    """
    groups = np.sort(costs)[len(costs) % ranks :].reshape(-1, ranks).mean(axis=1)
    excess = np.maximum(groups / microbatches - costs.mean(), 0.0)
    steps = len(groups) / microbatches
    return float(ranks * microbatches * (excess**2).sum() / steps / costs.var())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kinds", nargs="+", choices=list(DOCUMENTS), default=list(DOCUMENTS))
    parser.add_argument("--documents", type=int, help="of each stream; else as many as DOCUMENTS says")
    parser.add_argument("--ranks", type=int, nargs="+", default=RANKS)
    given = parser.parse_args()
    for kind in given.kinds:
        documents = given.documents or DOCUMENTS[kind]
        lengths, _ = draw(documents, kind)
        packing = next_k_fit(lengths, CAPACITY)
        tokens, costs = packing.sums(lengths), attention_costs(lengths, packing)
        print(f"\n{kind}: {len(costs):,} sequences; efficiency, design effect")
        print(f"{'ranks':>6}{'m':>4}" + "".join(f"{order:>18}" for order in ORDERS) + f"{'bound':>8}")
        for ranks in given.ranks:
            for microbatches in MICROBATCHES:
                cells = []
                for order in ORDERS:
                    steps = plan_for(order, costs, ranks, microbatches).epoch(0)
                    found = balance_of(steps[: len(costs) // (ranks * microbatches)], tokens, costs)
                    cells.append(f"{found.efficiency:11.3f}{found.deff:7.2f}")
                bound = least_design_effect(costs, ranks, microbatches)
                print(f"{ranks:6}{microbatches:4}" + "".join(cells) + f"{bound:8.2f}", flush=True)


if __name__ == "__main__":
    main()
