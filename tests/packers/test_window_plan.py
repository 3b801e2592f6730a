from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.packers import random_order, window_plan, within_step
from sft_toolkit.packers.window_plan import _deal


def costs_of(n: int) -> np.ndarray:
    return np.exp(np.random.default_rng(1).normal(20, 1.5, n)).astype(np.int64)


def test_microbatches_of_a_window_do_not_overlap_in_cost() -> None:
    costs = costs_of(8 * 16 * 3)
    for deal in (True, False):
        for window in window_plan(costs, 8, 4, buffer=16, deal=deal).epoch(0).reshape(3, 16, 8):
            by_cost = np.sort(costs[window], axis=1)
            by_cost = by_cost[np.argsort(by_cost[:, 0])]
            assert (by_cost[1:, 0] >= by_cost[:-1, -1]).all()


def test_each_rank_reads_cheap_and_dear_sequences_alike() -> None:
    costs = costs_of(4 * 64 * 20)
    rank_means = costs[window_plan(costs, 4, 2, buffer=64).epoch(0)].mean(axis=(0, 1))
    assert np.ptp(rank_means) < 0.15 * costs.mean()  # never sorted by rank, it would be 0.5


def test_within_step_reads_the_batches_of_random_order() -> None:
    costs = costs_of(1000)
    balanced, shuffled = (make(costs, 8, 4, seed=2).epoch(1) for make in (within_step, random_order))
    assert (np.sort(balanced.reshape(len(balanced), -1)) == np.sort(shuffled.reshape(len(shuffled), -1))).all()
    assert (balanced != shuffled).any()


def test_groups_are_dealt_costliest_first_to_the_step_that_has_cost_least() -> None:
    # 9 and 8 open the two steps, 7 joins 8, and the full step of 15 leaves 1 to the step of 9.
    assert _deal(np.array([1, 9, 7, 8]), 2, 2).tolist() == [[1, 0], [3, 2]]


@given(st.integers(1, 6), st.integers(1, 5), st.data())
def test_every_group_is_dealt_once(steps: int, size: int, data: st.DataObject) -> None:
    totals = data.draw(st.lists(st.integers(0, 2**40), min_size=steps * size, max_size=steps * size))
    hands = _deal(np.array(totals), steps, size)
    assert hands.shape == (steps, size)
    assert sorted(hands.ravel().tolist()) == list(range(steps * size))


def test_a_buffer_that_is_no_whole_number_of_steps_is_rounded_down() -> None:
    costs = costs_of(200)
    assert (window_plan(costs, 2, 3, buffer=11).epoch(0) == window_plan(costs, 2, 3, buffer=9).epoch(0)).all()
    assert (window_plan(costs, 2, 3, buffer=1).epoch(0) == window_plan(costs, 2, 3, buffer=3).epoch(0)).all()
