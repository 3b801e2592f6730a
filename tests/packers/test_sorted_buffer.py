from __future__ import annotations

import numpy as np

from sft_toolkit.packers import random_order, sorted_buffer


def test_all_ranks_draw_the_same_place_of_their_sorted_buffers() -> None:
    ranks, buffer = 4, 8
    costs = np.random.default_rng(2).permutation(ranks * buffer)
    draws = sorted_buffer(costs, ranks, buffer=buffer, seed=3).epoch(0).reshape(buffer, ranks)
    places = np.argsort(np.argsort(costs[draws], axis=0), axis=0)
    assert (places == places[:, :1]).all()


def test_a_rank_keeps_to_its_own_share_of_the_shuffle() -> None:
    costs = np.random.default_rng(2).permutation(4 * 8 * 3)
    drawn, shuffled = sorted_buffer(costs, 4, 2, buffer=8, seed=3).epoch(0), random_order(costs, 4, 2, seed=3).epoch(0)
    for rank in range(4):
        assert set(drawn[:, :, rank].ravel().tolist()) == set(shuffled[:, :, rank].ravel().tolist())
