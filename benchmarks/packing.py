"""Packing a million document lengths: this packer beside a plain Python one, TRL's segment tree, and the lower bound.

    python benchmarks/packing.py

The lengths are those of length_streams.py. Figures mean something beside one another, in one run.
"""

from __future__ import annotations

import importlib.util
import time
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable

import numpy as np
from length_streams import CAPACITY, draw

from sft_toolkit.packers import best_fit_decreasing, next_k_fit

DOCUMENTS = 1_000_000
STREAMS = ("even", "short", "long", "agentic", "even-grouped")


def python_next_k_fit(lengths: list[int], k: int = 256) -> int:
    """Next-k-Fit, best fit and close fullest, no reserve: one sorted list of free << 32 | bin."""
    bins: list[int] = []
    opened = 0
    for length in lengths:
        place = bisect_left(bins, length << 32)
        if place < len(bins):
            entry = bins.pop(place) - (length << 32)
        else:
            if len(bins) == k:
                del bins[0]
            entry = (CAPACITY - length) << 32 | opened
            opened += 1
        if entry >> 32:
            insort(bins, entry)
    return opened


def trl_segment_tree(lengths: np.ndarray) -> int:
    """Best-fit-decreasing on TRL's segment tree in its default chunks of 1,000 rows; lengths only, no tokens moved."""
    from trl.data_utils import _SegmentTree

    sequences = 0
    for start in range(0, len(lengths), 1000):
        tree = _SegmentTree(CAPACITY)
        tree.add(CAPACITY)
        bins_with: Counter[int] = Counter()
        for length in np.sort(lengths[start : start + 1000])[::-1].tolist():
            free = tree.search(length)
            if free == CAPACITY:
                sequences += 1
            else:
                bins_with[free] -= 1
                if not bins_with[free]:
                    tree.remove(free)
            if free > length:
                bins_with[free - length] += 1
                tree.add(free - length)
    return sequences


def cpu_seconds(work: Callable[[], int], repeats: int) -> tuple[float, int]:
    """Least CPU time of `repeats` runs, and how many sequences came out."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        sequences = work()
        times.append(time.process_time() - begin)
    return min(times), sequences


def contenders(lengths: np.ndarray) -> dict[str, tuple[Callable[[], int], int]]:
    as_list = lengths.tolist()
    found: dict[str, tuple[Callable[[], int], int]] = {
        "next-k-fit, reserve (ours)": (lambda: next_k_fit(lengths, CAPACITY).sequences, 5),
        "next-k-fit, no reserve (ours)": (lambda: next_k_fit(lengths, CAPACITY, held=0).sequences, 5),
        "best fit decreasing (ours)": (lambda: best_fit_decreasing(lengths, CAPACITY).sequences, 3),
        "next-k-fit, plain Python": (lambda: python_next_k_fit(as_list), 2),
    }
    if importlib.util.find_spec("trl"):
        found["TRL's segment tree, by 1,000"] = (lambda: trl_segment_tree(lengths), 1)
    return found


def main() -> None:
    next_k_fit([1], 1)
    best_fit_decreasing([1], 1)
    print(f"{DOCUMENTS:,} documents, capacity {CAPACITY:,}; CPU seconds, padding in %")
    for kind in STREAMS:
        lengths, _ = draw(DOCUMENTS, kind)
        tokens = int(lengths.sum(dtype=np.int64))
        bound = -(-tokens // CAPACITY)
        print(f"\n{kind:32}{'CPU s':>8}{'x ours':>9}{'sequences':>11}{'padding':>9}")
        print(f"{'lower bound':32}{'':8}{'':9}{bound:11,}{100 * (1 - tokens / (bound * CAPACITY)):9.4f}")
        ours = 0.0
        for name, (work, repeats) in contenders(lengths).items():
            seconds, sequences = cpu_seconds(work, repeats)
            ours = ours or seconds
            padding = 100 * (1 - tokens / (sequences * CAPACITY))
            print(f"{name:32}{seconds:8.3f}{seconds / ours:9.1f}{sequences:11,}{padding:9.4f}")


if __name__ == "__main__":
    main()
