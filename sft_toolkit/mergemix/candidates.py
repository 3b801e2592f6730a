"""Candidate mixtures of data clusters: points on the simplex, sampled around a base and kept as exact decimals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from sft_toolkit import json_text
from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.souping.weights import parse_weight

STEP = 10_000
"""Sampled weights are multiples of 1/STEP, so that they sum to one exactly."""

_TOLERANCE = Fraction(1, 1_000_000)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A weight for each cluster, not negative, summing to one. The id names files."""

    id: str
    weights: Mapping[str, Fraction]

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "weights": {name: float(weight) for name, weight in self.weights.items()}}


def sample_candidates(
    clusters: Sequence[str],
    count: int,
    seed: int,
    concentration: float = 1.0,
    base: Mapping[str, Fraction] | None = None,
) -> list[Candidate]:
    """Different draws from Dirichlet(K * concentration * base); `base` is uniform unless given.

    Concentration 1 around the uniform base is the uniform distribution on the simplex; more stays nearer to the base.
    """
    if len(clusters) < 2:
        raise UsageError("a mixture needs two clusters or more")
    centre = np.array([1.0 / len(clusters) if base is None else float(base.get(name, 0)) for name in clusters])
    if concentration <= 0 or (centre <= 0).any():
        raise UsageError("the concentration and each cluster's weight in the base have to be above zero")
    # numpy promises the same stream in every version for RandomState alone.
    generator = np.random.RandomState(seed % 2**32)
    seen: dict[tuple[int, ...], None] = {}
    for _ in range(100 * count):
        seen.setdefault(_in_steps(generator.dirichlet(len(clusters) * concentration * centre)))
        if len(seen) == count:
            break
    else:
        raise UsageError(f"{count} different mixtures cannot be drawn", "ask for fewer or lower the concentration")
    digits = len(str(count - 1))
    return [
        Candidate(f"mix-{place:0{digits}}", {name: Fraction(n, STEP) for name, n in zip(clusters, steps, strict=True)})
        for place, steps in enumerate(seen)
    ]


def _in_steps(point: np.ndarray) -> tuple[int, ...]:
    """Whole steps that sum to STEP: what rounding down leaves over goes to the largest remainders."""
    scaled = point * STEP
    steps = np.floor(scaled).astype(int)
    missing = STEP - int(steps.sum())
    steps[np.argsort(steps - scaled, kind="stable")[:missing]] += 1
    return tuple(int(count) for count in steps)


def read_candidates(path: Path, clusters: Sequence[str] | None = None) -> list[Candidate]:
    """Read JSONL of {"id", "weights": {cluster: weight}}. A cluster that a mixture does not name has weight zero.

    Raises ToolkitError with the line for weights that are negative, name no cluster or do not sum to one.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ToolkitError(f"{path}: cannot be read: {error}") from error
    mixtures = [_read_line(line, f"{path}:{number}", clusters) for number, line in enumerate(lines, 1) if line.strip()]
    if not mixtures:
        raise ToolkitError(f"{path}: no mixtures")
    ids = [mixture.id for mixture in mixtures]
    repeated = next((name for name in ids if ids.count(name) > 1), None)
    if repeated:
        raise ToolkitError(f"{path}: two mixtures are called {repeated}")
    return mixtures


def _read_line(line: str, place: str, clusters: Sequence[str] | None) -> Candidate:
    try:
        entry = json_text.decode_strictly(line)
    except (ValueError, RecursionError) as error:
        raise ToolkitError(f"{place}: not JSON: {error}") from error
    name = entry.get("id") if isinstance(entry, dict) else None
    given = entry.get("weights") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ToolkitError(f"{place}: no id that can name a folder: {name!r}")
    if not isinstance(given, dict):
        raise ToolkitError(f"{place}: mixture {name} has no weights by cluster")
    unknown = sorted(given.keys() - set(clusters or given))
    if unknown:
        raise ToolkitError(f"{place}: mixture {name} names {unknown[0]}, which is no cluster", _listed(clusters or ()))
    weights = {cluster: parse_weight(given.get(cluster, 0)) for cluster in clusters or sorted(given)}
    negative = next((cluster for cluster, weight in weights.items() if weight < 0), None)
    if negative:
        raise ToolkitError(f"{place}: mixture {name} gives {negative} a negative weight")
    total = sum(weights.values(), start=Fraction(0))
    if abs(total - 1) > _TOLERANCE:
        raise ToolkitError(f"{place}: the weights of mixture {name} sum to {float(total):g}", "make them sum to 1")
    return Candidate(name, weights)


def _listed(clusters: Sequence[str]) -> str:
    return f"the clusters are {', '.join(clusters)}"
