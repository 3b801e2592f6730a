"""`--order auto`: efficient where there are microbatches enough to keep steps random, cautious where there are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sft_toolkit.packers import OrderChoice, choose_order, next_k_fit
from sft_toolkit.packers.attention_cost import attention_costs

CAPACITY = 262_144


@pytest.fixture(scope="module")
def choose(stream: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Callable[..., OrderChoice]:
    """`choose("even", 64, 4)`: what is chosen for a million documents on 64 ranks with 4 microbatches."""
    packed = {}
    for kind in ("even", "long"):
        lengths, _ = stream(kind)
        packing = next_k_fit(lengths, CAPACITY)
        packed[kind] = packing.sums(lengths), attention_costs(lengths, packing)
    return lambda kind, ranks, microbatches: choose_order(*packed[kind], ranks, microbatches)


@pytest.mark.parametrize("kind", ["even", "long"])
def test_eight_microbatches_keep_the_window_random_and_one_does_not(
    kind: str, choose: Callable[..., OrderChoice]
) -> None:
    many, one = choose(kind, 64, 8), choose(kind, 64, 1)
    assert many.order == "window" and many.figures["window"].deff < 0.2
    assert one.figures["window"].deff > 60 and one.figures["sorted-buffer"].deff > 50
    # One microbatch leaves nothing to sort within a step: both are the random batches, and wait for the slowest rank.
    assert one.order in ("within-step", "random")
    assert one.figures[one.order].efficiency == pytest.approx(one.figures["random"].efficiency)


def test_the_reports_four_microbatches_on_64_ranks_take_the_window_of_even_data(
    choose: Callable[..., OrderChoice],
) -> None:
    choice = choose("even", 64, 4)
    assert choice.order == "window"
    assert choice.figures["window"].efficiency > 0.99 and choice.figures["window"].deff < 2


def test_a_heavy_tail_at_four_microbatches_gets_the_order_that_is_sorted_within_steps() -> None:
    # One in a hundred sequences costs a hundred times the others: its group outweighs any step.
    costs = np.where(np.arange(6400) % 100 == 0, 100_000, 1_000).astype(np.int64)
    choice = choose_order(np.full(6400, 1000), costs, ranks=16, microbatches=4, buffer=100)
    assert choice.figures["window"].deff > 2
    assert choice.order == "within-step"
    assert choice.figures["within-step"].efficiency > choice.figures["random"].efficiency


def test_one_rank_waits_for_nobody_and_takes_the_first_order() -> None:
    assert choose_order(np.arange(1, 41), np.arange(1, 41) ** 2, ranks=1).order == "window"


def test_the_choice_says_what_was_compared() -> None:
    line = str(choose_order(np.arange(1, 41), np.arange(1, 41) ** 2, ranks=2, microbatches=2))
    assert line.startswith("window: the most efficient with deff at most 2") and "random" in line
