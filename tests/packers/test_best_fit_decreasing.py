from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.packers import Packing, best_fit_decreasing

CAPACITY = 262_144


def sequences(packing: Packing) -> list[list[int]]:
    return [part.tolist() for part in np.split(packing.documents, packing.offsets[1:-1])] if packing.sequences else []


def naive(lengths: list[int], capacity: int, carried: int, chunk: int) -> list[list[int]]:
    bins: list[list[int]] = []
    free: dict[int, int] = {}
    for start in range(0, len(lengths), chunk):
        emptiest = sorted(((left, which) for which, left in free.items() if left), reverse=True)[:carried]
        free = {which: left for left, which in emptiest}
        members = range(start, min(start + chunk, len(lengths)))
        for document in sorted(members, key=lambda document: -lengths[document]):
            fitting = [(left, which) for which, left in free.items() if left >= lengths[document]]
            which = min(fitting)[1] if fitting else len(bins)
            if not fitting:
                bins.append([])
                free[which] = capacity
            bins[which].append(document)
            free[which] -= lengths[document]
    return [sorted(documents) for documents in bins]


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[int], int, int, int]:
    capacity = draw(st.integers(1, 60))
    lengths = draw(st.lists(st.integers(1, capacity), max_size=120))
    return lengths, capacity, draw(st.integers(0, 5)), draw(st.integers(1, 40))


@given(problems())
def test_the_compiled_form_equals_a_naive_scan(problem: tuple[list[int], int, int, int]) -> None:
    lengths, capacity, carried, chunk = problem
    packing = best_fit_decreasing(lengths, capacity, carried, chunk=chunk)
    assert sequences(packing) == naive(lengths, capacity, carried, chunk)


@given(problems())
def test_every_document_is_in_exactly_one_sequence_and_no_sequence_is_over(
    problem: tuple[list[int], int, int, int],
) -> None:
    lengths, capacity, carried, chunk = problem
    packing = best_fit_decreasing(lengths, capacity, carried, chunk=chunk)
    assert sorted(packing.documents.tolist()) == list(range(len(lengths)))
    assert all(sum(lengths[document] for document in sequence) <= capacity for sequence in sequences(packing))


def test_long_documents_are_placed_first() -> None:
    # In stream order 2 and 3 would share a bin with nothing to fill it; longest first, 8 + 2 and 7 + 3 are full.
    assert sequences(best_fit_decreasing([2, 3, 7, 8], 10)) == [[0, 3], [1, 2]]


@pytest.mark.parametrize(("kind", "percent"), [("agentic", 0.003), ("even-grouped", 0.0135), ("even", 0.0019)])
def test_padding_of_a_million_documents_is_the_published_one(
    stream: Callable[[str], tuple[np.ndarray, np.ndarray]], kind: str, percent: float
) -> None:
    lengths, _ = stream(kind)
    packing = best_fit_decreasing(lengths, CAPACITY)
    unused = 100 * (1 - int(lengths.sum(dtype=np.int64)) / (packing.sequences * CAPACITY))
    assert unused == pytest.approx(percent, rel=0.05)


def test_a_document_over_the_capacity_is_named() -> None:
    with pytest.raises(ValueError, match="document 1 has 11 tokens, outside 1 … 10"):
        best_fit_decreasing([3, 11], 10)
