"""Compiled loops that place documents in bins. Importing this module imports numba: do it where it is used.

The open bins are one sorted array of `free << 32 | bin`, least free space first. Bisection finds the best fit for a
document, the fullest bin is the first entry, and a bin that takes a document only moves to the left. Among equals the
bin opened first comes first. (A bit set over free space, which finds a bin in three words, was three times slower.)

The reserve of short documents is one queue per length, oldest first, of at most EACH: `held[length]` documents wait in
`queue[length]`. What ends a bin exactly is which lengths are there, not how many there are of one; without the bound a
long stream fills the reserve with the few lengths that are seldom called for, and nothing else gets in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., Any])
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

EACH = 4  # documents of one length that may wait at a time
_BIN = (1 << 32) - 1


def compiled(function: Function) -> Function:
    """Compile on first call, and keep the machine code for later runs where there is a place that can be written."""
    try:
        return cast(Function, njit(cache=True)(function))
    except RuntimeError:
        return cast(Function, njit(function))


@compiled
def _best_fit(bins: Int64s, still_open: int, length: int) -> int:
    """Place in `bins` of the fullest open bin with `length` tokens free; `still_open` if there is none."""
    low, high = 0, still_open
    while low < high:
        middle = (low + high) >> 1
        if bins[middle] < length << 32:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _put(bins: Int64s, place: int, free: int, which: int) -> None:
    """Write a bin's entry at `place` or as far to the left of it as its free space demands."""
    # A bin only ever loses space, so its entry moves left and the rest of the array stays sorted: a shift of a few
    # words, against sorting k entries again for every document.
    entry = free << 32 | which
    while place > 0 and bins[place - 1] > entry:
        bins[place] = bins[place - 1]
        place -= 1
    bins[place] = entry


@compiled
def _remove(bins: Int64s, place: int, still_open: int, count: int = 1) -> int:
    """Close `count` bins from `place` on; returns how many are still open."""
    for left in range(place, still_open - count):
        bins[left] = bins[left + count]
    return still_open - count


@compiled
def _settle(bins: Int64s, place: int, free: int, which: int, still_open: int) -> int:
    """Note what a bin at `place` has free now, or close it if that is nothing; returns how many are still open."""
    if not free:
        return _remove(bins, place, still_open)
    _put(bins, place, free, which)
    return still_open


@compiled
def _hold(held: Int32s, queue: Int32s, document: int, length: int) -> None:
    queue[length, held[length]] = document
    held[length] += 1


@compiled
def _release(held: Int32s, queue: Int32s, length: int) -> int:
    """Take the document of this length that has waited longest."""
    document = int(queue[length, 0])
    held[length] -= 1
    for place in range(held[length]):
        queue[length, place] = queue[length, place + 1]
    return document


@compiled
def _longest_held(held: Int32s, limit: int) -> int:
    """The greatest length held that is no more than `limit`, or 0."""
    for length in range(min(limit, len(held) - 1), 0, -1):
        if held[length]:
            return length
    return 0


@compiled
def _close_exactly(held: Int32s, queue: Int32s, free: int, which: int, bin_of: Int32s) -> int:
    """Fill exactly `free` tokens with one held document or with two. Returns how many it took: 0, 1 or 2."""
    short = len(held) - 1
    if free <= short and held[free]:
        bin_of[_release(held, queue, free)] = which
        return 1
    # Down from the longest to half of `free`: each pair is seen once, by its longer document. The longest goes first
    # because a long document has the fewest bins left that it fits; short ones will find a place later.
    for longer in range(min(short, free - 1), (free - 1) // 2, -1):
        shorter = free - longer
        if not held[longer] or shorter > short or not held[shorter]:
            continue
        # Two of one length: a second document must wait, or the first would be released twice.
        if longer == shorter and held[longer] < 2:
            continue
        bin_of[_release(held, queue, longer)] = which
        bin_of[_release(held, queue, shorter)] = which
        return 2
    return 0


@compiled
def _close_tightly(held: Int32s, queue: Int32s, free: int, which: int, bin_of: Int32s) -> int:
    """Fill up to `free` tokens, longest held documents first, the last one or two exactly. Returns how many it took."""
    taken = 0
    length = _longest_held(held, free)
    # Before each document that is taken, one or two are looked for that end the bin exactly. Longest first leaves the
    # short ones, which can be combined in the most ways, for that last step.
    while length:
        exact = _close_exactly(held, queue, free, which, bin_of)
        if exact:
            return taken + exact
        bin_of[_release(held, queue, length)] = which
        taken += 1
        free -= length
        length = _longest_held(held, free)
    return taken


@compiled
def place_next_k_fit(lengths: Int64s, capacity: int, k: int, short: int, most_held: int) -> tuple[Int32s, int]:
    """Next-k-Fit with best fit and close fullest over lengths: int64[n] in stream order.

    Returns (bin of each document: int32[n], number of bins). When the stream ends, what is still held is placed the
    same way, longest first.
    """
    n = len(lengths)
    bin_of = np.empty(n, np.int32)
    bins = np.empty(min(k, n), np.int64)
    held, queue = np.zeros(short + 1, np.int32), np.empty((short + 1, EACH), np.int32)
    still_open = opened = waiting = came = 0
    while came < n or waiting:
        # First the stream, document by document; then what is still held, as if it came last, longest first.
        if came < n:
            document, length = came, lengths[came]
            came += 1
            if length <= short and waiting < most_held and held[length] < EACH:
                _hold(held, queue, document, length)
                waiting += 1
                continue
        else:
            length = _longest_held(held, short)
            document = _release(held, queue, length)
            waiting -= 1
        place = _best_fit(bins, still_open, length)
        if place < still_open:
            which, free = bins[place] & _BIN, bins[place] >> 32
        else:
            # No bin takes it. If a bin must be closed for it, then the fullest: it has the least space to lose. The new
            # bin enters at the right end of the array, and _settle moves it from there.
            if still_open == k:
                waiting -= _close_tightly(held, queue, bins[0] >> 32, bins[0] & _BIN, bin_of)
                still_open = _remove(bins, 0, still_open)
            which, free, place = opened, capacity, still_open
            opened += 1
            still_open += 1
        bin_of[document] = which
        free -= length
        # A bin that the reserve can end exactly now is ended now. Left open it might take another document, after which
        # nothing held fits; a full bin also frees its place among the k.
        if free and waiting:
            exact = _close_exactly(held, queue, free, which, bin_of)
            waiting -= exact
            free = 0 if exact else free
        still_open = _settle(bins, place, free, which, still_open)
    return bin_of, opened


@compiled
def place_best_fit(lengths: Int64s, order: Int64s, capacity: int, chunk: int, carried: int) -> tuple[Int32s, int]:
    """Best fit of the documents in `order`: int64[n]; before each chunk all but the emptiest `carried` bins close.

    Returns (bin of each document: int32[n], number of bins).
    """
    n = len(lengths)
    bin_of = np.empty(n, np.int32)
    bins = np.empty(min(chunk + carried, n), np.int64)
    still_open = opened = 0
    for done in range(n):
        if done % chunk == 0 and still_open > carried:
            still_open = _remove(bins, 0, still_open, still_open - carried)
        document = order[done]
        length = lengths[document]
        place = _best_fit(bins, still_open, length)
        if place < still_open:
            which, free = bins[place] & _BIN, bins[place] >> 32
        else:
            which, free = opened, capacity
            opened += 1
            still_open += 1
        bin_of[document] = which
        free -= length
        still_open = _settle(bins, place, free, which, still_open)
    return bin_of, opened
