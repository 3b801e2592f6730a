"""Streams of document lengths as mixtures of SFT data sets have them: what packing and balance are measured on.

57 data sets, as many as the Kolibri report mixes. Their median lengths cover its range, 27 to 90,223 tokens, evenly in
the logarithm; around its median a data set is lognormal. How many documents a data set has decides the kind:

    even      sizes are independent of the length
    short     sizes go with median ** -0.5: most documents are short, the usual case
    long      sizes go with median ** 0.5: long contexts prevail, the hardest to pack
    agentic   as even, without the data sets of a median under 4,000: no short documents to fill gaps with

`KIND-grouped` is the same documents data set by data set instead of shuffled. `python benchmarks/length_streams.py`
prints what they look like.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CAPACITY = 262_144
SHORTEST = 27
DATASETS = 57
KINDS = ("even", "short", "long", "agentic")
_LONGEST_MEDIAN = 90_223
_AGENTIC_MEDIAN = 4_000


@dataclass(frozen=True)
class DataSets:
    """The table behind every stream: median length in tokens, deviation of its logarithm, relative size."""

    medians: NDArray[np.float64]
    deviations: NDArray[np.float64]
    sizes: NDArray[np.float64]

    @classmethod
    def drawn(cls, seed: int = 20260101) -> DataSets:
        random = np.random.default_rng(seed)
        medians = np.exp(np.linspace(np.log(SHORTEST), np.log(_LONGEST_MEDIAN), DATASETS))
        return cls(medians, random.uniform(0.35, 1.0, DATASETS), np.exp(random.normal(0, 1, DATASETS)))

    def shares(self, kind: str) -> NDArray[np.float64]:
        """The share of documents that each data set has in a stream of this kind: float64[DATASETS]."""
        exponent = {"short": -0.5, "long": 0.5}.get(kind, 0.0)
        weights = self.sizes * self.medians**exponent
        if kind == "agentic":
            weights = weights * (self.medians >= _AGENTIC_MEDIAN)
        return weights / weights.sum()


def draw(n: int, kind: str = "even", seed: int = 7) -> tuple[NDArray[np.int32], NDArray[np.int16]]:
    """Lengths of n documents in tokens, SHORTEST to CAPACITY: int32[n]; and their data sets: int16[n]."""
    name, _, grouped = kind.partition("-")
    if name not in KINDS or grouped not in ("", "grouped"):
        raise ValueError(f"stream {kind!r}: unknown; choose one of {', '.join(KINDS)}, or one with -grouped")
    table, random = DataSets.drawn(), np.random.default_rng(seed)
    datasets = random.choice(DATASETS, size=n, p=table.shares(name)).astype(np.int16)
    if grouped:
        datasets.sort()
    lengths = table.medians[datasets] * np.exp(table.deviations[datasets] * random.standard_normal(n))
    return np.clip(np.rint(lengths), SHORTEST, CAPACITY).astype(np.int32), datasets


def main() -> None:
    print(f"{'kind':10}{'mean':>8}" + "".join(f"{f'p{at:g}':>9}" for at in (1, 50, 90, 99, 99.9)) + f"{'per bin':>9}")
    for kind in KINDS:
        lengths, _ = draw(1_000_000, kind)
        quantiles = np.percentile(lengths, [1, 50, 90, 99, 99.9])
        mean = float(lengths.mean())
        print(f"{kind:10}{mean:8,.0f}" + "".join(f"{value:9,.0f}" for value in quantiles) + f"{CAPACITY / mean:9.1f}")


if __name__ == "__main__":
    main()
