"""What a packed sequence costs: attention is masked per document, so it grows with each document's own length.

    C(s) = sum over documents d in s of |d|^2        (SPEC section 7)

One document of 262,144 tokens costs 256^2 = 65,536 k^2; 64 documents of 4k in its place cost 64 * 4^2 = 1,024 k^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sft_toolkit.packers.packing import Packing


def attention_costs(lengths: ArrayLike, packing: Packing) -> NDArray[np.int64]:
    """C of each sequence: int64[sequences], tokens squared. lengths: int[n], tokens."""
    return packing.sums(np.square(np.asarray(lengths, np.int64)))


def attention_cost(cu_seqlens: ArrayLike) -> int:
    """C of one sequence, from its document boundaries: int[documents + 1], 0 … tokens."""
    return int(np.square(np.diff(np.asarray(cu_seqlens, np.int64))).sum())


@dataclass(frozen=True, slots=True)
class PackingStatistics:
    """What a packing came to. Costs are in tokens squared; `cost_cv` is their standard deviation over their mean."""

    sequences: int
    documents: int
    tokens: int
    padding: float
    documents_per_sequence: float
    cost_min: int
    cost_median: int
    cost_max: int
    cost_cv: float


def packing_statistics(
    tokens: NDArray[np.integer], documents: NDArray[np.integer], costs: NDArray[np.int64], capacity: int
) -> PackingStatistics:
    """Sum up a packing from its sequences' tokens, documents and costs: int[sequences] each.

    `padding` is the share of all capacity that no token uses, in 0 … 1.
    """
    n = len(tokens)
    if not n:
        return PackingStatistics(0, 0, 0, 0.0, 0.0, 0, 0, 0, 0.0)
    total = int(tokens.sum(dtype=np.int64))
    return PackingStatistics(
        sequences=n,
        documents=int(documents.sum(dtype=np.int64)),
        tokens=total,
        padding=1 - total / (n * capacity),
        documents_per_sequence=float(documents.mean()),
        cost_min=int(costs.min()),
        cost_median=int(np.median(costs)),
        cost_max=int(costs.max()),
        cost_cv=float(costs.std() / costs.mean()),
    )
