"""Mixtures worth training next: where the regression expects the best scores, without leaving what was scored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sft_toolkit.mergemix.rank_correlation import Floats, Interval
from sft_toolkit.mergemix.surrogate import Surrogate

_POOL = 20_000
_CORNERS = 3
APART = 0.1
"""Proposals differ by this much weight or more (half the sum of absolute differences)."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A mixture, float64[K], the score expected of it and the 90% prediction interval, None from too few scores."""

    weights: Floats
    expected: float
    interval: Interval | None


def propose(
    surrogate: Surrogate, mixtures: Floats, count: int, lower_is_better: bool = False, seed: int = 0
) -> list[Proposal]:
    """The best of many blends of scored mixtures, none close to a better one.

    A blend of up to three scored mixtures lies in their convex hull, so that the regression is never asked to
    extrapolate. Fewer than `count` come back where the hull is small.
    """
    pool = np.concatenate([mixtures, _blends(mixtures, seed)])
    expected = surrogate.predict(pool)
    chosen: list[int] = []
    for place in np.argsort(expected if lower_is_better else -expected, kind="stable"):
        if len(chosen) == count:
            break
        if all(np.abs(pool[place] - pool[other]).sum() / 2 >= APART for other in chosen):
            chosen.append(int(place))
    intervals = surrogate.intervals(pool[chosen])
    return [
        Proposal(pool[place], float(expected[place]), interval)
        for place, interval in zip(chosen, intervals, strict=True)
    ]


def _blends(mixtures: Floats, seed: int) -> Floats:
    generator = np.random.RandomState(seed)
    corners = generator.randint(0, len(mixtures), (_POOL, _CORNERS))
    shares = generator.dirichlet(np.ones(_CORNERS), _POOL)
    return np.einsum("pc,pck->pk", shares, mixtures[corners])
