"""Which mixtures beat the one that was set by hand, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from sft_toolkit.errors import UsageError
from sft_toolkit.labelers.wilson import wilson_interval
from sft_toolkit.mergemix.rank_correlation import Interval
from sft_toolkit.mergemix.student import student_95
from sft_toolkit.mergemix.verdict import Noise


@dataclass(frozen=True, slots=True)
class Against:
    """`gain`: how much better a mixture scores than the baseline, below 0 where it scores worse; `interval`: of the
    gain, at 95%, where the noise of a score is known."""

    id: str
    score: float
    gain: float
    interval: Interval | None

    @property
    def beyond_noise(self) -> bool | None:
        """Whether the mixture is better even at the lower end of the interval."""
        return None if self.interval is None else self.interval.low > 0


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """All other mixtures with a score of one `kind` ("merged" or "trained"), best first.

    `rate`: the 95% interval of the share of such mixtures that beat the baseline (Wilson's); it holds for mixtures
    that were chosen in the same way, and not for the best of many.
    """

    kind: str
    baseline: str
    score: float
    others: list[Against]

    @property
    def better(self) -> int:
        return sum(other.gain > 0 for other in self.others)

    @property
    def rate(self) -> Interval:
        return Interval(*wilson_interval(self.better, len(self.others)))

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "baseline": self.baseline,
            "score": self.score,
            "better": self.better,
            "of": len(self.others),
            "rate_interval": list(self.rate),
            "mixtures": [
                {
                    "id": other.id,
                    "score": other.score,
                    "gain": other.gain,
                    "interval": None if other.interval is None else list(other.interval),
                    "beyond_noise": other.beyond_noise,
                }
                for other in self.others
            ],
        }


def compare_with_baseline(
    baseline: str, kinds: Mapping[str, Mapping[str, Sequence[float]]], noises: Mapping[str, Noise | None], lower: bool
) -> list[BaselineComparison]:
    """A comparison for each kind of scores that the baseline and at least one other mixture have.

    `kinds`: scores of each mixture by kind, one for each time that it was scored; `noises`: that of one of them, which
    is known, or estimated, and then Student's t widens the intervals; `lower`: lower scores are better. Raises
    UsageError where the baseline has no score to compare.
    """
    found = [
        _compared(kind, baseline, scores, noises[kind], lower)
        for kind, scores in kinds.items()
        if baseline in scores and len(scores) > 1
    ]
    if not found:
        known = sorted({name for scores in kinds.values() for name in scores})
        raise UsageError(
            f"`baseline` {baseline}: has no score beside another mixture's", f"scored are {', '.join(known) or 'none'}"
        )
    return found


def _compared(
    kind: str, baseline: str, scores: Mapping[str, Sequence[float]], noise: Noise | None, lower: bool
) -> BaselineComparison:
    own = scores[baseline]
    sign = -1.0 if lower else 1.0
    others = []
    for name, runs in scores.items():
        if name != baseline:
            gain = sign * float(np.mean(runs) - np.mean(own))
            interval = None
            if noise is not None:
                half = student_95(noise.freedom) * noise.deviation * sqrt(1 / len(runs) + 1 / len(own))
                interval = Interval(gain - half, gain + half)
            others.append(Against(name, float(np.mean(runs)), gain, interval))
    others.sort(key=lambda other: (-other.gain, other.id))
    return BaselineComparison(kind, baseline, float(np.mean(own)), others)
