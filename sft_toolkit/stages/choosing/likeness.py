"""How alike two texts are, and sketches by which candidates for that are found without comparing all pairs.

The likeness is the Jaccard index of the sets of character 5-shingles of the normalised texts. In short texts that index
depends on how long the changed word is; there it is at least what words of usual length would give.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import xxhash
from rapidfuzz.distance import Levenshtein
from rensa import RMinHash

SHINGLE: Final = 5
SHORT_TEXT: Final = 60
"""Words up to which a text is short."""
SKETCH: Final = 128
_USUAL_WORD = 4 / 3
"""Share of shingles that a share of changed words changes, in words of usual length."""
_SLACK = 0.12
"""How far below the likeness of two short texts their Jaccard index may lie."""
_RECALL = 0.995
_SEED = 19


def shingles(text: str) -> set[str]:
    return {text[begin : begin + SHINGLE] for begin in range(max(1, len(text) - SHINGLE + 1))}


def likeness(a: str, b: str) -> float:
    """Of two normalised texts, 0 to 1."""
    if a == b:
        return 1.0
    first, second = shingles(a), shingles(b)
    index = len(first & second) / len(first | second)
    words, others = a.split(" "), b.split(" ")
    longer = max(len(words), len(others))
    if longer > SHORT_TEXT:
        return index
    changed = min(1.0, _USUAL_WORD * Levenshtein.distance(words, others) / longer)
    return max(index, (1 - changed) / (1 + changed))


def band_rows(threshold: float) -> int:
    """Rows of a band of the sketch: the most with which _RECALL of the pairs at the threshold share a band.

    Pairs of Jaccard index s share one of b bands of r rows with probability 1 - (1 - s^r)^b.
    """
    lowest = max(0.05, threshold - _SLACK)
    fitting = [rows for rows in range(1, 17) if 1 - (1 - lowest**rows) ** (SKETCH // rows) >= _RECALL]
    return max(fitting, default=1)


def bands(parts: Sequence[str], marks: bytes, rows: int) -> npt.NDArray[np.uint64]:
    """One hash for each band of the sketch of a record's texts: uint64[SKETCH // rows].

    Texts of which each is as like as the threshold have, taken together, an index no lower. `marks` must be equal for
    a band to be shared.
    """
    sketch = RMinHash(num_perm=SKETCH, seed=_SEED)
    sketch.update([f"{index}{each}" for index, part in enumerate(parts) for each in sorted(shingles(part))])
    digest = np.array(sketch.digest(), np.uint32)
    state = xxhash.xxh3_64_intdigest(marks)
    ends = range(0, SKETCH - rows + 1, rows)
    return np.array(
        [xxhash.xxh3_64_intdigest(digest[begin : begin + rows].tobytes(), state) for begin in ends], np.uint64
    )
