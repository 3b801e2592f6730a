"""What scores of merges say about mixtures: their order, a regression, proposals, and whether to trust any of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from sft_toolkit.choices import SurrogateKind, require_choices
from sft_toolkit.errors import ToolkitError
from sft_toolkit.mergemix.baseline import BaselineComparison, compare_with_baseline
from sft_toolkit.mergemix.candidates import Candidate
from sft_toolkit.mergemix.proposals import Proposal, propose
from sft_toolkit.mergemix.rank_correlation import Floats
from sft_toolkit.mergemix.surrogate import Surrogate, fit_surrogate
from sft_toolkit.mergemix.verdict import Noise, RankCheck, Verdict, check_ranks, pooled_noise, unchecked_warning

Repeated = Mapping[str, Sequence[float]]
"""Each mixture's scores: of merges one for each evaluation, of trained models one for each run that trained it."""


@dataclass(frozen=True)
class RankOptions:
    """`noise` is the standard deviation of one score, for when no model was scored, or trained, twice. `draws`: random
    orders tried for the chance of an order. `baseline` is the id of the mixture that the others are to beat.
    `exact_merged`: the evaluation of a merge comes out the same every time.
    """

    surrogate: SurrogateKind = "auto"
    proposals: int = 3
    lower_is_better: bool = False
    noise: float | None = None
    draws: int = 10_000
    seed: int = 0
    baseline: str | None = None
    exact_merged: bool = False

    def __post_init__(self) -> None:
        require_choices(self)


@dataclass(frozen=True)
class Ranking:
    """`scores` of mixtures by id, best first; `check` where at least one mixture was trained; `against_baseline` of
    merged and of trained scores, where a baseline is named.
    """

    clusters: list[str]
    scores: dict[str, float]
    surrogate: Surrogate
    proposals: list[Proposal]
    check: RankCheck | None
    noise: Noise | None
    trained_noise: Noise | None
    against_baseline: list[BaselineComparison] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        return self.check.verdict if self.check else Verdict.UNCHECKED

    @property
    def warnings(self) -> list[str]:
        found = [unchecked_warning(len(self.clusters), self.check)]
        if not self.surrogate.explains:
            found.append(
                "the regression foresees unseen scores no better than chance lets their mean do: distrust its proposals"
            )
        return [warning for warning in found if warning]

    def to_json(self) -> dict[str, Any]:
        """For programs; numbers that are not defined are null."""
        return {
            "verdict": self.verdict.value,
            "check": None if self.check is None else _defined(asdict(self.check)),
            "noise": _deviation(self.noise),
            "noise_of_training": _deviation(self.trained_noise),
            "regression": {
                "model": self.surrogate.name,
                "explains": self.surrogate.explains,
                "chance": self.surrogate.chance,
                "leave_one_out_error": self.surrogate.error,
                "error_of_the_mean": self.surrogate.baseline_error,
            },
            "candidates": [{"id": name, "score": score} for name, score in self.scores.items()],
            "proposals": [
                {
                    "weights": {
                        cluster: round(float(weight), 4)
                        for cluster, weight in zip(self.clusters, proposal.weights, strict=True)
                    },
                    "expected": proposal.expected,
                    "interval": None if proposal.interval is None else list(proposal.interval),
                }
                for proposal in self.proposals
            ],
            "against_baseline": [comparison.to_json() for comparison in self.against_baseline],
            "warnings": self.warnings,
        }


def rank_mixtures(mixtures: Sequence[Candidate], merged: Repeated, trained: Repeated, options: RankOptions) -> Ranking:
    """Rank the mixtures that have a merged score. Raises ToolkitError where a score belongs to no mixture."""
    by_id = {mixture.id: mixture for mixture in mixtures}
    stranger = next((name for name in (*merged, *trained) if name not in by_id), None)
    if stranger:
        raise ToolkitError(f"a score belongs to {stranger}, which is no mixture")
    clusters = list(mixtures[0].weights)
    means = {name: float(np.mean(scores)) for name, scores in merged.items()}
    names = sorted(means, key=lambda name: (means[name] if options.lower_is_better else -means[name], name))
    points = np.array([[float(by_id[name].weights[cluster]) for cluster in clusters] for name in names])
    surrogate = fit_surrogate(options.surrogate, points, np.array([means[name] for name in names]), options.seed)
    return Ranking(
        clusters,
        {name: means[name] for name in names},
        surrogate,
        propose(surrogate, points, options.proposals, options.lower_is_better, options.seed),
        _check(merged, trained, options),
        _noise(merged, options),
        _noise(trained, options),
        _against_baseline(merged, trained, options),
    )


def _against_baseline(merged: Repeated, trained: Repeated, options: RankOptions) -> list[BaselineComparison]:
    if options.baseline is None:
        return []
    kinds = {"trained": trained, "merged": merged}
    noises = {kind: _noise(scores, options) for kind, scores in kinds.items()}
    return compare_with_baseline(options.baseline, kinds, noises, options.lower_is_better)


def _check(merged: Repeated, trained: Repeated, options: RankOptions) -> RankCheck | None:
    both = sorted(merged.keys() & trained.keys())
    if not both:
        return None
    noises = []
    for scores, exact in ((merged, options.exact_merged), (trained, False)):
        noise = Noise(0.0) if exact else _noise(scores, options)
        repeats = np.mean([len(scores[name]) for name in both])
        noises.append(None if noise is None else noise.deviation / float(np.sqrt(repeats)))
    known = None if noises[0] is None or noises[1] is None else (noises[0], noises[1])
    return check_ranks(_means(merged, both), _means(trained, both), known, options.draws, options.seed)


def _means(scores: Repeated, names: Sequence[str]) -> Floats:
    return np.array([np.mean(scores[name]) for name in names])


def _noise(scores: Repeated, options: RankOptions) -> Noise | None:
    measured = pooled_noise(list(scores.values()))
    return Noise(options.noise) if measured is None and options.noise is not None else measured


def _deviation(noise: Noise | None) -> float | None:
    return None if noise is None else noise.deviation


def _defined(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(value, float) and np.isnan(value) else value for name, value in values.items()}
