"""Whether scores of merged models order mixtures as trained models do, and whether that can be known at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from sft_toolkit.mergemix.rank_correlation import (
    Floats,
    Interval,
    noise_ceiling,
    null_band,
    permutation_probability,
    spearman,
    spearman_interval,
)

FEWEST = 5
"""With four pairs even perfect agreement happens by chance in one of twelve cases."""
FEW_CLUSTERS = 3
_CHANCE = 0.05


class Verdict(StrEnum):
    RANKS = "ranks mixtures as training does"
    MISRANKS = "ranks mixtures against training"
    NOTHING = "says nothing"
    HIDDEN = "cannot be known: with this noise even a perfect proxy would not stand out"
    UNCHECKED = "unchecked: no mixture was trained"


@dataclass(frozen=True, slots=True)
class Noise:
    """The standard deviation of one score. `freedom`: of how many degrees of freedom it was estimated; None: known."""

    deviation: float
    freedom: int | None = None


@dataclass(frozen=True, slots=True)
class RankCheck:
    """Agreement of merged with trained scores over the `n` mixtures that have both.

    `interval` of rho at 95%, None where no method holds it; `chance` is the permutation probability, `null_band` the
    |rho| that 95% of unrelated scores stay below, `ceiling` the mean rho of a perfect proxy under the known noise, None
    where none is known.
    """

    n: int
    rho: float
    interval: Interval | None
    chance: float
    null_band: float
    ceiling: float | None
    verdict: Verdict


def check_ranks(
    merged: Floats, trained: Floats, noise: tuple[float, float] | None, draws: int = 10_000, seed: int = 0
) -> RankCheck:
    """Compare scores of the same mixtures; `noise` is the standard deviation of one merged and one trained score.

    The verdict is more than "says nothing" only where the order is unlikely by chance, by the permutation probability,
    which is exact whatever the number of pairs. Where it is not, and the noise is such that a perfect proxy would on
    average stay within chance too, more mixtures or less noise are needed to know anything: then it is HIDDEN.
    """
    n = merged.size
    if n < FEWEST:
        return RankCheck(n, spearman(merged, trained), None, 1.0, 1.0, None, Verdict.NOTHING)
    rho = spearman(merged, trained)
    chance = permutation_probability(merged, trained, draws, seed)
    band, ceiling = null_band(n), None
    if noise is not None:
        ceiling = noise_ceiling(n, _reliability(merged, noise[0]), _reliability(trained, noise[1]))
    verdict = _verdict(rho, chance, band, ceiling)
    return RankCheck(n, rho, spearman_interval(rho, n), chance, band, ceiling, verdict)


def unchecked_warning(clusters: int, check: RankCheck | None) -> str | None:
    """The warning for a user who is about to trust merged scores over many clusters unchecked."""
    if clusters <= FEW_CLUSTERS or check is not None:
        return None
    return (
        f"{clusters} clusters and no trained check: the Kolibri report saw merged scores order mixtures as training "
        "did with 2 or 3 clusters, and not at all with 20 (rho -0.09); train and score a few of these mixtures"
    )


def pooled_noise(repeats: Sequence[Sequence[float]]) -> Noise | None:
    """The noise of one score, from mixtures that were scored more than once; None without such."""
    groups = [np.asarray(scores) for scores in repeats if len(scores) > 1]
    if not groups:
        return None
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    freedom = sum(group.size - 1 for group in groups)
    return Noise(float(np.sqrt(squares / freedom)), freedom)


def _reliability(scores: Floats, noise: float) -> float:
    variance = float(scores.var(ddof=1))
    return max(0.0, 1 - noise**2 / variance) if variance > 0 else 0.0


def _verdict(rho: float, chance: float, band: float, ceiling: float | None) -> Verdict:
    if np.isnan(rho):
        return Verdict.NOTHING
    if chance <= _CHANCE:
        return Verdict.RANKS if rho > 0 else Verdict.MISRANKS
    return Verdict.HIDDEN if ceiling is not None and ceiling < band else Verdict.NOTHING
