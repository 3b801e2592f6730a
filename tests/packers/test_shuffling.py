from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.packers.shuffling import Shuffler


def reference(state: int) -> int:
    """SplitMix64's output function, in unbounded integers."""
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
    return state ^ (state >> 31)


def test_draws_are_those_of_splitmix64_from_state_zero() -> None:
    # First outputs for seed 0 as published with the generator and used by its many ports.
    assert Shuffler().draws(3).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_draws_go_on_where_the_last_ones_ended() -> None:
    gamma = 0x9E3779B97F4A7C15
    shuffler = Shuffler()
    parts = [*shuffler.draws(2).tolist(), *shuffler.draws(0).tolist(), *shuffler.draws(3).tolist()]
    assert parts == [reference(gamma * n % 2**64) for n in range(1, 6)]


@given(st.integers(0, 300), st.integers(-(2**70), 2**70))
def test_a_permutation_holds_each_index_once(n: int, seed: int) -> None:
    assert sorted(Shuffler(seed).permutation(n).tolist()) == list(range(n))


def test_each_row_is_permuted_on_its_own() -> None:
    rows = np.tile(np.arange(20), (50, 1))
    permuted = Shuffler(3).permuted_rows(rows)
    assert (np.sort(permuted, axis=1) == rows).all()
    assert len({tuple(row) for row in permuted.tolist()}) == 50


def test_every_part_of_the_key_and_its_place_matter() -> None:
    keys = [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1), (-1,)]
    assert len({tuple(Shuffler(*key).draws(2).tolist()) for key in keys}) == len(keys)


def test_places_are_uniform() -> None:
    # 4,000 shuffles of 5: each value at each place 800 times, standard deviation 25.3; five of them allowed.
    counts = np.zeros((5, 5), int)
    for seed in range(4000):
        counts[np.arange(5), Shuffler(seed, 9).permutation(5)] += 1
    assert np.abs(counts - 800).max() < 127
