"""Best-fit-decreasing in chunks of the stream: the tightest packing where there are no short documents to fill gaps.

Each chunk is sorted, longest first, so long documents meet long ones and short ones meet short ones: sequences become
homogeneous, and the number of documents in a step spreads 2 to 12 times wider than with Next-k-Fit. An option, not the
default. Unlike peers' chunks of 1,000 rows, a chunk hands its 256 emptiest bins on to the next.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sft_toolkit.packers.packing import Packing, checked_lengths

CHUNK = 131_072
CARRIED = 256


def best_fit_decreasing(lengths: ArrayLike, capacity: int, carried: int = CARRIED, *, chunk: int = CHUNK) -> Packing:
    """Pack documents chunk by chunk, longest first, each into the open bin it fills best.

    lengths: int[n], tokens, each in 1 … capacity
    carried: bins that stay open from one chunk to the next
    chunk: documents that are sorted together

    Raises ValueError for a length outside the range.
    """
    from sft_toolkit.packers.placement import place_best_fit

    tokens = checked_lengths(lengths, capacity)
    order = np.lexsort((-tokens, np.arange(len(tokens)) // chunk))
    return Packing.from_bins(*place_best_fit(tokens, order, capacity, chunk, carried))
