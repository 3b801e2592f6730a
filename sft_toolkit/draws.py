"""Random draws that depend on names, not on order: the same whatever the workers, the blocks or the resumptions.

A draw is XXH3-64 of its parts, chained: each part is hashed with the hash of what precedes it as the seed, so
("ab", "c") and ("a", "bc") differ. An integer counts as its decimal text. Of the 64 bits the upper 53 become a
float64 in [0, 1). All of it is fixed for good: another value for the same parts would relabel everyone's data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

_SPARE_BITS = 11
_STEP = 2.0**-53


def key(seed: int, *parts: str | int) -> int:
    """Hash of (seed, *parts) as an integer in [0, 2**64): to sort by, or to seed a generator with."""
    state = xxh3_64_intdigest(str(seed).encode())
    for part in parts:
        state = xxh3_64_intdigest(str(part).encode(), state)
    return state


def uniform(seed: int, *parts: str | int) -> float:
    """A number in [0, 1) that (seed, *parts) alone decides. Begin the parts with what the draw is for."""
    return (key(seed, *parts) >> _SPARE_BITS) * _STEP


def keys(seed: int, ids: Sequence[str], purpose: str) -> npt.NDArray[np.uint64]:
    """`key(seed, purpose, id)` of each id: uint64[n]."""
    state = key(seed, purpose)
    return np.fromiter((xxh3_64_intdigest(name.encode(), state) for name in ids), np.uint64, len(ids))


def uniforms(seed: int, ids: Sequence[str], purpose: str) -> npt.NDArray[np.float64]:
    """`uniform(seed, purpose, id)` of each id: float64[n]."""
    return (keys(seed, ids, purpose) >> np.uint64(_SPARE_BITS)).astype(np.float64) * _STEP
