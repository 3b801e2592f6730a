from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.packers import Packing, next_k_fit

CAPACITY = 262_144


def sequences(packing: Packing) -> list[list[int]]:
    return [part.tolist() for part in np.split(packing.documents, packing.offsets[1:-1])] if packing.sequences else []


def padding(lengths: np.ndarray, packing: Packing, capacity: int = CAPACITY) -> float:
    """Unused share of all capacity, in percent."""
    return 100 * (1 - int(lengths.sum(dtype=np.int64)) / (packing.sequences * capacity))


class Naive:
    """Next-k-Fit in its plainest form: lists, scanned from end to end."""

    def __init__(self, capacity: int, k: int, short: int, held: int) -> None:
        self.capacity, self.k, self.short, self.most_held = capacity, k, short, held
        self.bins: list[list[int]] = []
        self.free: dict[int, int] = {}
        self.held: dict[int, list[int]] = defaultdict(list)

    def pack(self, lengths: list[int]) -> list[list[int]]:
        for document, length in enumerate(lengths):
            room = sum(map(len, self.held.values())) < self.most_held and len(self.held[length]) < 4
            if length <= self.short and room:
                self.held[length].append(document)
            else:
                self.place(document, length)
        while waiting := [length for length, stack in self.held.items() if stack]:
            self.place(self.held[max(waiting)].pop(0), max(waiting))
        return [sorted(documents) for documents in self.bins]

    def place(self, document: int, length: int) -> None:
        fitting = [(free, which) for which, free in self.free.items() if free >= length]
        if fitting:
            _, which = min(fitting)
        else:
            if len(self.free) == self.k:
                self.close(min((free, which) for which, free in self.free.items())[1])
            which = len(self.bins)
            self.bins.append([])
            self.free[which] = self.capacity
        self.bins[which].append(document)
        self.free[which] -= length
        assert len(self.free) <= self.k
        if self.free[which] == 0 or self.fill_exactly(which, self.free[which]):
            del self.free[which]

    def fill_exactly(self, which: int, free: int) -> bool:
        """One held document, else the first two that add up, the longer one as long as can be."""
        top = min(free - 1, self.short)
        pairs = [(free,), *((longer, free - longer) for longer in range(top, 0, -1) if longer >= free - longer)]
        for pair in pairs:
            if all(len(self.held[length]) >= pair.count(length) for length in pair):
                self.bins[which] += [self.held[length].pop(0) for length in pair]
                return True
        return False

    def close(self, which: int) -> None:
        free = self.free.pop(which)
        while waiting := [length for length, stack in self.held.items() if stack and length <= free]:
            if self.fill_exactly(which, free):
                return
            self.bins[which].append(self.held[max(waiting)].pop(0))
            free -= max(waiting)


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[int], int, int, int, int]:
    capacity = draw(st.integers(1, 60))
    lengths = draw(st.lists(st.integers(1, capacity), max_size=120))
    return lengths, capacity, draw(st.integers(1, 6)), draw(st.integers(0, capacity)), draw(st.integers(0, 8))


@given(problems())
def test_every_document_is_in_exactly_one_sequence_and_whole(problem: tuple[list[int], int, int, int, int]) -> None:
    lengths, capacity, k, short, held = problem
    packing = next_k_fit(lengths, capacity, k, short=short, held=held)
    assert sorted(packing.documents.tolist()) == list(range(len(lengths)))
    assert packing.offsets[0] == 0
    assert packing.offsets[-1] == len(lengths)
    assert (np.diff(packing.offsets) > 0).all()


@given(problems())
def test_no_sequence_exceeds_the_capacity(problem: tuple[list[int], int, int, int, int]) -> None:
    lengths, capacity, k, short, held = problem
    packing = next_k_fit(lengths, capacity, k, short=short, held=held)
    assert all(sum(lengths[document] for document in sequence) <= capacity for sequence in sequences(packing))


@given(problems())
def test_at_most_k_bins_are_open_at_any_document(problem: tuple[list[int], int, int, int, int]) -> None:
    lengths, capacity, k, short, held = problem
    packing = next_k_fit(lengths, capacity, k, short=short, held=held)
    placed_as_they_came = [
        came for sequence in sequences(packing) if (came := [d for d in sequence if lengths[d] > short or not held])
    ]
    for document in range(len(lengths)):
        assert sum(came[0] <= document <= came[-1] for came in placed_as_they_came) <= k


@given(problems())
def test_the_compiled_form_equals_a_naive_scan(problem: tuple[list[int], int, int, int, int]) -> None:
    lengths, capacity, k, short, held = problem
    packing = next_k_fit(lengths, capacity, k, short=short, held=held)
    assert sequences(packing) == Naive(capacity, k, short, held).pack(lengths)


def test_the_compiled_form_equals_a_naive_scan_with_256_bins_of_a_heavy_tailed_stream(
    stream: Callable[[str], tuple[np.ndarray, np.ndarray]],
) -> None:
    lengths = stream("even")[0][:4000]
    assert sequences(next_k_fit(lengths, CAPACITY, short=1024, held=200)) == Naive(CAPACITY, 256, 1024, 200).pack(
        lengths.tolist()
    )


def test_a_document_goes_where_it_leaves_least_room() -> None:
    # 6 and 7 open two bins with 4 and 3 free; 3 fits the second exactly, 4 the first.
    assert sequences(next_k_fit([6, 7, 3, 4], 10, held=0)) == [[0, 3], [1, 2]]


def test_the_fullest_bin_closes_when_k_are_open_and_none_takes_the_document() -> None:
    # Bins of 8 and 6 are open; 5 fits neither, so the bin of 8 closes, and 2 finds only the bins of 6 and 5.
    assert sequences(next_k_fit([8, 6, 5, 2], 10, 2, held=0)) == [[0], [1, 3], [2]]


def test_with_one_open_bin_it_is_next_fit() -> None:
    assert sequences(next_k_fit([8, 6, 5, 2], 10, 1, held=0)) == [[0], [1], [2, 3]]


def test_held_documents_close_a_bin_exactly_alone_or_in_pairs() -> None:
    # 3 and 1 wait; 97 leaves 3 (taken whole), 96 leaves 4, and then only the 1 and the second 3 add up to it.
    assert sequences(next_k_fit([3, 1, 97, 3, 96], 100, short=5)) == [[0, 2], [1, 3, 4]]


@pytest.mark.parametrize(
    ("kind", "percent"), [("even", 0.0019), ("short", 0.0099), ("long", 0.0002), ("agentic", 0.106)]
)
def test_padding_of_a_million_documents_is_the_published_one(
    stream: Callable[[str], tuple[np.ndarray, np.ndarray]], kind: str, percent: float
) -> None:
    lengths, _ = stream(kind)
    packing = next_k_fit(lengths, CAPACITY)
    assert packing.sums(lengths).max() <= CAPACITY
    assert padding(lengths, packing) <= percent * 1.001 + 0.00005


@pytest.mark.parametrize(("kind", "percent"), [("even", 0.0043), ("short", 0.0099), ("even-grouped", 0.652)])
def test_padding_without_the_reserve_is_the_published_one(
    stream: Callable[[str], tuple[np.ndarray, np.ndarray]], kind: str, percent: float
) -> None:
    lengths, _ = stream(kind)
    assert padding(lengths, next_k_fit(lengths, CAPACITY, held=0)) == pytest.approx(percent, abs=0.0005)


def test_the_reserve_reaches_the_lower_bound_where_there_are_short_documents(
    stream: Callable[[str], tuple[np.ndarray, np.ndarray]],
) -> None:
    for kind in ("even", "short"):
        lengths, _ = stream(kind)
        assert next_k_fit(lengths, CAPACITY).sequences == -(-int(lengths.sum(dtype=np.int64)) // CAPACITY)


def test_a_reserve_that_few_lengths_would_clog_still_ends_every_bin_exactly() -> None:
    # 300 documents of 30 come first: only 4 of them wait, so that the 3 and the 7 still find a place among the 8.
    # The 90 is then ended by 7 and 3 together.
    lengths = [30] * 300 + [3, 7, 90]
    assert [300, 301, 302] in sequences(next_k_fit(lengths, 100, short=30, held=8))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "percent"), [("even", 0.00003), ("short", 0.00015), ("long", 0.00005)])
def test_padding_of_22_million_documents_is_the_published_one(
    stream: Callable[..., tuple[np.ndarray, np.ndarray]], kind: str, percent: float
) -> None:
    lengths, _ = stream(kind, 22_000_000)
    assert padding(lengths, next_k_fit(lengths, CAPACITY)) <= percent + 0.000005


def test_nothing_packs_into_no_sequences() -> None:
    packing = next_k_fit([], 10)
    assert packing.sequences == 0
    assert packing.documents.tolist() == []


@pytest.mark.parametrize(
    ("lengths", "capacity", "k", "message"),
    [
        ([3, 11], 10, 2, "document 1 has 11 tokens, outside 1 … 10"),
        ([0], 10, 2, "document 0 has 0 tokens"),
        ([1], 10, 0, "at least 1 open bin"),
        ([], 0, 1, "capacity must be 1 … 2147483647 tokens, not 0"),
        ([], 2**31, 1, "capacity must be 1 … 2147483647 tokens, not 2147483648"),
        ([[1]], 2, 1, "one dimension"),
    ],
)
def test_what_cannot_be_packed_is_named(lengths: list[int], capacity: int, k: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        next_k_fit(lengths, capacity, k)
