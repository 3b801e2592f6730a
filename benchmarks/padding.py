"""Padding of Next-k-Fit at the report's size: the two tables of docs/packing.md.

    python benchmarks/padding.py [--documents 1000000 22000000]

In % of all capacity, at 262,144 tokens by number of documents, and for a million documents at other capacities. At most
256 sequences are open when the stream ends; "closed" leaves out the 256 emptiest ones, "all" none. 22 million documents
need 1 GB of memory and 100 million 5 GB.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from length_streams import CAPACITY, KINDS, draw
from numpy.typing import NDArray

from sft_toolkit.packers import next_k_fit

MILLION = 1_000_000
OPEN = 256
CAPACITIES = (512, 4_096, 65_536, 262_144, 1_048_576)
ONE_LENGTH = 700


def padding(lengths: NDArray[np.integer], capacity: int) -> tuple[float, float]:
    """Of closed sequences and of all, in % of their capacity."""
    tokens = np.sort(next_k_fit(lengths, capacity, OPEN).sums(lengths))
    closed = tokens[min(OPEN, len(tokens) - 1) :]
    return tuple(100 * (1 - float(part.mean()) / capacity) for part in (closed, tokens))  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, nargs="+", default=[MILLION, 22 * MILLION])
    given = parser.parse_args()
    next_k_fit([1], 1)
    print(f"{'documents':>12} {'stream':8}{'closed':>10}{'all':>10}{'seconds':>9}")
    for documents in given.documents:
        for kind in KINDS:
            lengths, _ = draw(documents, kind)
            begun = time.process_time()
            closed, everything = padding(lengths, CAPACITY)
            seconds = time.process_time() - begun
            print(f"{documents:12,} {kind:8}{closed:10.6f}{everything:10.5f}{seconds:9.1f}", flush=True)
    print(f"\nclosed, {MILLION:,} documents; longer ones are cut to the capacity")
    print(f"{'capacity':>12}" + "".join(f"{kind:>10}" for kind in KINDS) + f"{f'all of {ONE_LENGTH}':>12}")
    streams = [draw(MILLION, kind)[0] for kind in KINDS]
    for capacity in CAPACITIES:
        found = [padding(np.minimum(lengths, capacity), capacity)[0] for lengths in streams]
        alike = padding(np.full(MILLION, min(ONE_LENGTH, capacity), np.int32), capacity)[0]
        print(f"{capacity:12,}" + "".join(f"{value:10.6f}" for value in found) + f"{alike:12.6f}", flush=True)


if __name__ == "__main__":
    main()
