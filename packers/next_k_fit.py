"""Next-k-Fit: pack a stream of documents with a bounded number of open bins (SPEC section 6; the report's k is 256).

A document goes into the open bin that it fills best. If none takes it, a new bin opens, and if k are open then the
fullest of them closes for it. Short documents are not placed as they come: up to four of each length wait in a
reserve, from which every bin that nears its end is closed exactly, by one or two of them.

Padding in % of the sequences' capacity, of streams as benchmarks/length_streams.py draws them, capacity 262,144. Closed
bins are all but the 256 that are open when the stream ends; among all of them the emptiest one usually weighs most.

    documents     even            short           long            agentic
                  closed  all     closed  all     closed  all     closed  all
    1 million     .00000  .0019   .00000  .0099   .00002  .0002   .102    .105
    22 million    .00001  .00003  .00000  .00015  .00004  .00005  .102    .102
    100 million   .00001  .00002

Agentic streams have few short documents and leave gaps that nothing fills; documents of one length leave the remainder
of capacity by length, which no packer can use.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from sft_toolkit.packers.packing import Packing, checked_lengths

SHORT = 4096
HELD = 16_384


def next_k_fit(lengths: ArrayLike, capacity: int, k: int = 256, *, short: int = SHORT, held: int = HELD) -> Packing:
    """Pack documents in stream order; a pure function of its arguments.

    lengths: int[n], tokens, each in 1 … capacity
    k: most bins open at a time
    short, held: documents of up to `short` tokens may wait, four of each length and `held` of all at a time; held=0 is
        plain Next-k-Fit

    Raises ValueError for a length outside the range or k < 1.

    With two open bins of 10 tokens, 4 goes to 6 and closes that bin, 5 goes to 5, and 3 opens the third:

    >>> packing = next_k_fit([6, 5, 4, 5, 3], capacity=10, k=2)
    >>> [packing.documents[begin:end].tolist() for begin, end in zip(packing.offsets, packing.offsets[1:])]
    [[0, 2], [1, 3], [4]]
    """
    from sft_toolkit.packers.placement import place_next_k_fit

    if k < 1:
        raise ValueError(f"k must be at least 1 open bin, not {k}")
    tokens = checked_lengths(lengths, capacity)
    return Packing.from_bins(*place_next_k_fit(tokens, capacity, k, min(short, capacity), held))
