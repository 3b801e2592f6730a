from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from sft_toolkit.packers import next_k_fit, random_order, sorted_buffer, window_plan, within_step
from sft_toolkit.packers.attention_cost import attention_costs
from sft_toolkit.packers.balance import Balance, DataSetMix, balance_of

CAPACITY = 262_144
RANKS = 64


@dataclass
class Packed:
    """One stream, packed, and measured in its whole windows of 64 ranks and 256 sequences."""

    tokens: np.ndarray
    costs: np.ndarray
    mix: DataSetMix

    def measure(self, make: Callable, microbatches: int = 1, epoch: int = 0, **options: object) -> Balance:
        steps = make(self.costs, RANKS, microbatches, **options).epoch(epoch)
        whole = len(self.costs) // (RANKS * 256) * 256 // microbatches
        return balance_of(steps[:whole], self.tokens, self.costs, self.mix)


@pytest.fixture(scope="module")
def packed(stream: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Callable[[str], Packed]:
    def pack(kind: str) -> Packed:
        lengths, datasets = stream(kind, 5_000_000 if kind == "short" else 1_000_000)  # at least two windows
        packing = next_k_fit(lengths, CAPACITY)
        mix = DataSetMix(packing.offsets, datasets[packing.documents], lengths[packing.documents])
        return Packed(packing.sums(lengths), attention_costs(lengths, packing), mix)

    return cache(pack)


@pytest.mark.parametrize(("kind", "efficiency"), [("even", 0.493), ("short", 0.350), ("long", 0.573)])
def test_random_order_wastes_half_of_the_time(packed: Callable, kind: str, efficiency: float) -> None:
    assert packed(kind).measure(random_order).efficiency == pytest.approx(efficiency, abs=0.01)


@pytest.mark.parametrize(
    ("kind", "efficiency", "speed_up"), [("even", 0.937, 1.88), ("short", 0.925, 2.58), ("long", 0.943, 1.64)]
)
def test_the_sorted_buffer_gains_what_was_published(
    packed: Callable, kind: str, efficiency: float, speed_up: float
) -> None:
    data = packed(kind)
    found, baseline = data.measure(sorted_buffer), data.measure(random_order)
    assert found.efficiency == pytest.approx(efficiency, abs=0.015)
    assert found.throughput / baseline.throughput == pytest.approx(speed_up, rel=0.04)


@pytest.mark.parametrize(
    ("kind", "efficiency", "speed_up"), [("even", 0.991, 2.01), ("short", 0.988, 2.81), ("long", 0.992, 1.73)]
)
def test_the_window_plan_of_64_gains_more(packed: Callable, kind: str, efficiency: float, speed_up: float) -> None:
    data = packed(kind)
    found, baseline = data.measure(window_plan, buffer=64), data.measure(random_order)
    assert found.efficiency == pytest.approx(efficiency, abs=0.005)
    assert found.throughput / baseline.throughput == pytest.approx(speed_up, rel=0.03)


@pytest.mark.parametrize(("kind", "efficiency"), [("even", 0.998), ("long", 0.998)])
def test_the_window_plan_of_256_leaves_almost_nothing(packed: Callable, kind: str, efficiency: float) -> None:
    assert packed(kind).measure(window_plan).efficiency == pytest.approx(efficiency, abs=0.002)


def test_dealt_steps_are_as_mixed_as_random_ones_and_far_more_even_in_cost(packed: Callable) -> None:
    found, baseline = packed("even").measure(window_plan, 8), packed("even").measure(random_order, 8)
    assert found.efficiency == pytest.approx(0.998, abs=0.002)
    assert found.throughput / baseline.throughput == pytest.approx(2.03, rel=0.02)
    # A window's mean varies by chance, too, which is half of the .03: so mean over epochs.
    assert np.mean([packed("even").measure(window_plan, 8, epoch).deff for epoch in range(8)]) < 0.06
    assert found.total_variation == pytest.approx(0.035, abs=0.002)
    assert baseline.total_variation == pytest.approx(0.035, abs=0.002)


def test_a_sorted_order_makes_a_step_one_kind_of_data(packed: Callable) -> None:
    found, baseline = packed("even").measure(sorted_buffer), packed("even").measure(random_order)
    assert found.deff == pytest.approx(63, abs=1)
    assert found.total_variation == pytest.approx(0.24, abs=0.01)
    assert baseline.deff == pytest.approx(1, abs=0.2)
    assert baseline.total_variation == pytest.approx(0.10, abs=0.005)


def test_balance_within_a_step_costs_no_randomness(packed: Callable) -> None:
    found, baseline = packed("even").measure(within_step, 8), packed("even").measure(random_order, 8)
    assert found.efficiency == pytest.approx(0.935, abs=0.01)
    assert found.deff == pytest.approx(baseline.deff)
    assert found.total_variation == pytest.approx(baseline.total_variation)


def test_figures_of_a_plan_that_can_be_worked_by_hand() -> None:
    # Mean tokens 10 and mean cost 50: times 1.3, 0.7, 1.1 and 0.9. Microbatches (1.3, 0.7) and (1.1, 0.9) are done
    # after 1.3 and 1.1: efficiency (1/1.3 + 1/1.1) / 2, 40 tokens in 2.4. Step means 50 and 50: deff 0.
    tokens, costs = np.full(4, 10), np.array([80, 20, 60, 40])
    found = balance_of(np.array([[[0, 1]], [[2, 3]]]), tokens, costs)
    assert found.efficiency == pytest.approx((1 / 1.3 + 1 / 1.1) / 2)
    assert found.throughput == pytest.approx(40 / 2.4)
    assert found.deff == 0
    assert np.isnan(found.total_variation)


def test_alike_steps_have_the_design_effect_of_their_size() -> None:
    costs = np.array([10, 10, 30, 30])
    assert balance_of(np.array([[[0, 1]], [[2, 3]]]), costs, costs).deff == pytest.approx(2)


def test_filler_costs_no_time_and_counts_as_waiting() -> None:
    # One sequence and one filler: half of the ranks' time is used; a microbatch of filler alone takes none.
    found = balance_of(np.array([[[0, -1], [-1, -1]]]), np.array([5]), np.array([25]))
    assert found.efficiency == pytest.approx(0.5)
    assert found.throughput == pytest.approx(5)
    assert np.isnan(found.deff)


def test_total_variation_is_the_mean_distance_to_the_mix_of_all_data() -> None:
    # Sequences 0 and 1 hold data set 0 alone, 3 holds data set 1, 2 half of each: 50 of 80 tokens are of data set 0.
    # Its share is .5 in the first step and .75 in the second: .125 away from .625, both.
    mix = DataSetMix(np.array([0, 1, 2, 4, 5]), np.array([0, 0, 0, 1, 1]), np.array([20, 20, 10, 10, 20]))
    steps = np.array([[[0, 3]], [[1, 2]]])
    tokens = np.array([20, 20, 20, 20])
    assert balance_of(steps, tokens, tokens, mix).total_variation == pytest.approx(0.125)
    assert mix.of(steps.reshape(2, 2)).tolist() == [[20, 20], [30, 10]]
