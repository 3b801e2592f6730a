"""The greedy soup: try checkpoints in order of their own score, keep each that improves the soup.

Wortsman et al. 2022 (arXiv 2203.05482), recipe 1.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path

from sft_toolkit.shards.whole_folder import require_free
from sft_toolkit.souping.checkpoint import in_order
from sft_toolkit.souping.soup import require_outside, soup
from sft_toolkit.souping.writing import RECIPE, OutputOptions, Recipe, open_inputs

Evaluate = Callable[[Path], float]
"""A model's score."""


@dataclass(frozen=True, slots=True)
class Step:
    """One evaluation on the way: of a checkpoint alone, or of the soup with one more member."""

    members: tuple[str, ...]
    score: float
    kept: bool


def greedy_soup(
    paths: Sequence[Path],
    target: Path,
    options: OutputOptions,
    evaluate: Evaluate,
    lower_is_better: bool = False,
) -> Recipe:
    """Write the greedy soup to `target`; its recipe lists each step under "greedy". Equal scores go by name."""
    require_free(target, RECIPE, force=options.force)
    require_outside(target, paths)
    open_inputs(paths, options.dtype)
    steps: list[Step] = []
    members: list[Path] = []
    for trial, step in _trials(paths, target, options, evaluate, -1 if lower_is_better else 1):
        members = trial if step.kept else members
        steps.append(step)
    return soup(members, _equal(members), target, options, notes={"greedy": [asdict(step) for step in steps]})


def _trials(
    paths: Sequence[Path], target: Path, options: OutputOptions, evaluate: Evaluate, sign: int
) -> Iterator[tuple[list[Path], Step]]:
    alone = {path: evaluate(path) for path in in_order(paths)}
    ranked = sorted(alone, key=lambda path: -sign * alone[path])
    for path in ranked:
        yield [path], Step((str(path),), alone[path], path == ranked[0])
    members, best = ranked[:1], alone[ranked[0]]
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", suffix=".trial", dir=target.parent) as folder:
        for path in ranked[1:]:
            trial = [*members, path]
            model = Path(folder) / "model"
            soup(trial, _equal(trial), model, replace(options, force=True))
            score = evaluate(model)
            kept = sign * score > sign * best
            if kept:
                members, best = trial, score
            yield trial, Step(tuple(map(str, trial)), score, kept)


def _equal(members: Sequence[Path]) -> list[Fraction]:
    return [Fraction(1)] * len(members)
