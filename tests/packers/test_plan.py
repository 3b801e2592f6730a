from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.packers import FILLER, ORDERS, Plan, plan_for, random_order


def heavy_tailed(n: int, seed: int = 0) -> np.ndarray:
    return np.exp(np.random.default_rng(seed).normal(20, 1.5, n)).astype(np.int64)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    costs = draw(st.lists(st.integers(1, 2**40), max_size=150))
    shape = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    order, buffer, seed = draw(st.sampled_from(ORDERS)), draw(st.integers(1, 12)), draw(st.integers(0, 2**64 - 1))
    return plan_for(order, costs, *shape, buffer=buffer, seed=seed)


@given(plans(), st.integers(0, 3))
def test_an_epoch_reads_every_sequence_exactly_once(plan: Plan, epoch: int) -> None:
    read = plan.epoch(epoch).ravel()
    assert sorted(read[read != FILLER].tolist()) == list(range(plan.sequences))


@given(plans())
def test_only_the_last_step_holds_filler_and_never_a_whole_step_of_it(plan: Plan) -> None:
    steps = plan.epoch(0)
    assert len(steps) == plan.steps == -(-plan.sequences // (plan.ranks * plan.microbatches))
    missing = (steps == FILLER).sum(axis=(1, 2))
    assert not missing[:-1].any()
    assert (missing < plan.ranks * plan.microbatches).all()


@given(plans(), st.integers(0, 3), st.randoms(use_true_random=False))
def test_any_step_can_be_asked_for_in_any_order(plan: Plan, epoch: int, order: random.Random) -> None:
    whole = plan.epoch(epoch)
    steps = list(range(plan.steps))
    order.shuffle(steps)
    for step in steps:
        assert plan.step(epoch, step).tolist() == whole[step].tolist()
        last = plan.microbatches - 1, plan.ranks - 1
        assert plan.sequence(epoch, step, *last) == whole[step][last]


@pytest.mark.parametrize("order", ORDERS)
def test_two_ranks_that_plan_alone_agree_and_seed_and_epoch_change_the_order(order: str) -> None:
    costs = heavy_tailed(500)
    mine, theirs, other = (plan_for(order, costs, 4, 2, buffer=16, seed=seed) for seed in (7, 7, 8))
    assert (mine.epoch(3) == theirs.epoch(3)).all()
    assert (mine.epoch(3) != other.epoch(3)).any()
    assert (mine.epoch(3) != mine.epoch(4)).any()


def test_the_order_that_a_seed_stands_for_stays_what_it_is() -> None:
    # Written down once: a change here would make every resumed run read other data.
    costs = np.arange(1, 13) ** 2
    assert {order: plan_for(order, costs, 2, 2, buffer=4, seed=5).epoch(1).ravel().tolist() for order in ORDERS} == {
        "random": [1, 9, 7, 6, 11, 10, 3, 2, 5, 0, 8, 4],
        "sorted-buffer": [11, 10, 3, 6, 1, 2, 7, 9, 8, 4, 5, 0],
        "window": [10, 11, 2, 1, 9, 7, 6, 3, 4, 0, 5, 8],
        "within-step": [9, 7, 6, 1, 10, 11, 3, 2, 5, 8, 4, 0],
    }


@pytest.mark.parametrize("order", ORDERS)
def test_sequences_short_of_a_step_fill_whole_microbatches_where_order_allows(order: str) -> None:
    # 3 sequences for 4 ranks and 2 microbatches: one step, 5 places of filler.
    step = plan_for(order, [5, 6, 7], 4, 2).step(0, 0)
    assert step.shape == (2, 4)
    assert (step == FILLER).sum() == 5
    if order != "sorted-buffer":
        assert sorted((step != FILLER).sum(axis=1).tolist()) == [0, 3]


def test_filler_waits_with_the_cheapest_sequences() -> None:
    # 6 sequences, 4 ranks, 2 microbatches: the four most expensive make one microbatch, the two cheapest the other.
    step = plan_for("window", [10, 60, 20, 50, 30, 40], 4, 2).step(0, 0)
    assert sorted(sorted(microbatch.tolist()) for microbatch in step) == [[-1, -1, 0, 2], [1, 3, 4, 5]]


def test_random_order_is_a_shuffle_cut_into_steps() -> None:
    plan = random_order(np.ones(10), 2, 2, seed=1)
    first, again = plan.epoch(0).ravel(), random_order(np.arange(1, 11), 4, 1, seed=1).epoch(0).ravel()
    assert first.tolist() == again.tolist()
    assert first[-2:].tolist() == [FILLER, FILLER]


def test_a_plan_of_nothing_has_no_steps() -> None:
    plan = plan_for("window", [], 2)
    assert plan.steps == 0
    assert plan.epoch(0).shape == (0, 1, 2)


@pytest.mark.parametrize("step", [-1, 3])
def test_a_step_outside_the_epoch_is_refused(step: int) -> None:
    with pytest.raises(IndexError, match=f"step {step} is outside an epoch of 3 steps"):
        random_order(np.ones(9), 3).step(0, step)


def test_an_unknown_order_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ValueError, match="choose from window, sorted-buffer, within-step, random"):
        plan_for("global", [1], 1)


@pytest.mark.parametrize(("ranks", "microbatches"), [(0, 1), (1, 0)])
def test_a_plan_needs_ranks_and_microbatches(ranks: int, microbatches: int) -> None:
    with pytest.raises(ValueError, match="at least 1 rank and 1 microbatch"):
        random_order([1], ranks, microbatches)
