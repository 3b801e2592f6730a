"""Steps keep their sequences whatever ranks read them."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.packers import FILLER, ORDERS, plan_for
from sft_toolkit.shards.packed_index import PackedIndex
from sft_toolkit.training.order import Figures, Order


@given(
    sequences=st.integers(1, 40),
    planned=st.integers(1, 5),
    microbatches=st.integers(1, 4),
    ranks=st.integers(1, 7),
    order=st.sampled_from(ORDERS),
)
def test_a_step_has_the_same_sequences_on_any_number_of_ranks(
    sequences: int, planned: int, microbatches: int, ranks: int, order: str
) -> None:
    costs = np.random.default_rng(sequences).integers(1, 1000, sequences)
    plan = plan_for(order, costs, planned, microbatches, buffer=4)
    as_begun, resumed = Order(plan, planned), Order(plan, ranks)
    for step in range(2 * plan.steps):
        epoch, within = divmod(step, plan.steps)
        assert as_begun.step(step).tolist() == plan.step(epoch, within).tolist()
        dealt = resumed.step(step)
        assert dealt.shape == (-(-planned * microbatches // ranks), ranks)
        numbers = Counter(dealt.ravel().tolist()) - Counter({FILLER: dealt.size})
        assert numbers == Counter(plan.step(epoch, within).ravel().tolist()) - Counter({FILLER: dealt.size})


def test_figures_of_a_step_leave_filler_out() -> None:
    counts = {name: np.array([10, 20, 30]) for name in ("shard", "row", "tokens", "documents", "cost")}
    index = PackedIndex(**counts, loss_tokens=np.array([1, 0, 3]), mix=None, datasets=[])
    figures = Figures(index, np.array([100.0, 200.0, 600.0]))
    sequences = np.array([[2, 1], [0, FILLER]])
    assert (figures.tokens(sequences), figures.loss_tokens(sequences), figures.flops(sequences)) == (60, 4, 900)
    # the busiest rank does 600, then 100; the mean rank 400, then 50
    assert figures.imbalance(sequences) == 700 / 450
