"""Steps keep their sequences whatever ranks read them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.errors import UsageError
from sft_toolkit.packers import FILLER, ORDERS, plan_for
from sft_toolkit.shards.packed_index import PackedIndex
from sft_toolkit.training.order import Figures, Order


def test_whole_steps_alone_leave_out_what_lacks_sequences_in_every_epoch() -> None:
    plan = plan_for("random", np.ones(10, np.int64), 2, 2)
    order = Order(plan, 2, whole=True)
    assert order.steps_per_epoch == 2
    read = [set(order.step(step).ravel().tolist()) for step in range(4)]
    assert all(len(step) == 4 and FILLER not in step for step in read)
    assert not read[0] & read[1] and not read[2] & read[3]
    with pytest.raises(UsageError, match="`drop_last`: there are fewer sequences"):
        Order(plan_for("random", np.ones(3, np.int64), 2, 2), 2, whole=True)


def test_an_order_that_continues_begins_where_the_other_stopped() -> None:
    plan = plan_for("random", np.ones(10, np.int64), 2, 2)
    whole, later = Order(plan, 2), Order(plan, 2, first=5)
    assert all(np.array_equal(whole.step(5 + step), later.step(step)) for step in range(6))


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
    index = PackedIndex(**counts, loss_tokens=np.array([1, 0, 3]), shares=None, datasets=[])
    figures = Figures(index, np.array([100.0, 200.0, 600.0]))
    sequences = np.array([[2, 1], [0, FILLER]])
    assert (figures.tokens(sequences), figures.loss_tokens(sequences), figures.flops(sequences)) == (60, 4, 900)
    # the busiest rank does 600, then 100; the mean rank 400, then 50
    assert figures.imbalance(sequences) == 700 / 450
