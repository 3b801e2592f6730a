from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.packers import next_k_fit
from sft_toolkit.packers.attention_cost import attention_cost, attention_costs, packing_statistics

K = 1024


def test_one_document_of_256k_costs_65536_k_squared() -> None:
    packing = next_k_fit([256 * K], 256 * K)
    assert attention_costs([256 * K], packing).tolist() == [65_536 * K**2]


def test_64_documents_of_4k_cost_1024_k_squared() -> None:
    lengths = [4 * K] * 64
    packing = next_k_fit(lengths, 256 * K)
    assert packing.sequences == 1
    assert attention_costs(lengths, packing).tolist() == [1_024 * K**2]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60))
def test_a_sequence_costs_what_its_boundaries_say(lengths: list[int]) -> None:
    packing = next_k_fit(lengths, 50, 3)
    costs = attention_costs(lengths, packing)
    for cost, documents in zip(costs, np.split(packing.documents, packing.offsets[1:-1]), strict=True):
        parts = [lengths[document] for document in documents]
        assert cost == sum(part * part for part in parts)
        assert cost == attention_cost(np.cumsum([0, *parts]))


def test_the_longest_document_there_can_be_does_not_overflow() -> None:
    longest = 2**31 - 1
    packing = next_k_fit([longest, longest], longest)
    assert attention_costs([longest, longest], packing).tolist() == [longest**2, longest**2]


def test_statistics_of_two_sequences() -> None:
    # 8 of 10 and 9 of 10 tokens used: 3 of 20 are padding. Costs 40 and 81: mean 60.5, deviation 20.5.
    found = packing_statistics(np.array([8, 9]), np.array([2, 1]), np.array([40, 81]), 10)
    assert (found.sequences, found.documents, found.tokens) == (2, 3, 17)
    assert found.padding == pytest.approx(0.15)
    assert found.documents_per_sequence == 1.5
    assert (found.cost_min, found.cost_median, found.cost_max) == (40, 60, 81)
    assert found.cost_cv == pytest.approx(20.5 / 60.5)


def test_statistics_of_nothing_are_zero() -> None:
    nothing = np.zeros(0, np.int64)
    assert packing_statistics(nothing, nothing, nothing, 10).padding == 0
