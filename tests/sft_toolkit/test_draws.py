"""Draws: fixed for good, in range, uniform, and independent of everything but their parts."""

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.draws import key, keys, uniform, uniforms

MASK = 2**64 - 1
seeds = st.integers(-(2**70), 2**70)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def test_draws_are_fixed_for_good():
    assert key(0) == 1838281907459330133
    assert key(7, "effort", "bakery/1", 0) == 9253577115280576128
    assert uniform(7, "effort", "bakery/1", 0) == 0.5016374205824673


def test_the_hash_is_xxh3_of_each_part_seeded_by_the_hash_of_those_before_it():
    """XXH3-64 written out here, for inputs of 1 to 3 bytes, from its specification."""
    assert key(42, "ab", "xyz") == _xxh3_short(b"xyz", _xxh3_short(b"ab", _xxh3_short(b"42", 0)))


def _xxh3_short(text: bytes, seed: int) -> int:
    secret = int.from_bytes(bytes.fromhex("b8fe6c3923a44bbe"), "little")
    flip = ((secret & 0xFFFFFFFF) ^ (secret >> 32)) + seed
    packed = text[0] << 16 | text[len(text) // 2] << 24 | text[-1] | len(text) << 8
    mixed = (packed ^ flip) & MASK
    mixed = (mixed ^ mixed >> 33) * 0xC2B2AE3D27D4EB4F & MASK
    mixed = (mixed ^ mixed >> 29) * 0x165667B19E3779F9 & MASK
    return mixed ^ mixed >> 32


@given(seeds, st.lists(names, max_size=20), names)
def test_arrays_hold_what_single_draws_give(seed, ids, purpose):
    assert keys(seed, ids, purpose).tolist() == [key(seed, purpose, name) for name in ids]
    assert uniforms(seed, ids, purpose).tolist() == [uniform(seed, purpose, name) for name in ids]


@given(seeds, st.lists(names | st.integers(), max_size=4))
def test_a_uniform_is_in_the_half_open_unit_interval(seed, parts):
    assert 0.0 <= uniform(seed, *parts) < 1.0


def test_the_border_between_two_parts_counts():
    assert key(1, "ab", "c") != key(1, "a", "bc")
    assert key(1, "a", "") != key(1, "a")
    assert key(11, "a") != key(1, "1a")


def test_an_integer_part_counts_as_its_decimal_text():
    assert key(3, "id", 12) == key(3, "id", "12")


def test_a_hundred_thousand_neighbouring_ids_fill_a_hundred_cells_evenly():
    cells = np.bincount((uniforms(0, [f"r{i}" for i in range(100_000)], "shuffle") * 100).astype(int), minlength=100)
    chi_square = ((cells - 1000.0) ** 2 / 1000.0).sum()
    assert chi_square < 149  # 0.1% quantile of 99 degrees of freedom


def test_draws_of_two_purposes_seeds_or_indexes_are_uncorrelated():
    ids = [f"r{i}" for i in range(50_000)]
    streams = [
        uniforms(0, ids, "effort"),
        uniforms(1, ids, "effort"),
        uniforms(0, ids, "shuffle"),
        np.array([uniform(0, "effort", name, 0) for name in ids]),
        np.array([uniform(0, "effort", name, 1) for name in ids]),
    ]
    off_diagonal = np.corrcoef(streams)[np.triu_indices(len(streams), 1)]
    assert np.abs(off_diagonal).max() < 4 / np.sqrt(len(ids))


def test_another_process_draws_the_same_though_python_salts_its_own_hash():
    program = "from sft_toolkit.draws import uniform; print(uniform(5, 'opener', 'äöü', 2).hex())"
    printed = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": salt}, capture_output=True, text=True, check=True
        ).stdout.strip()
        for salt in ("1", "2")
    }
    assert printed == {uniform(5, "opener", "äöü", 2).hex()}
