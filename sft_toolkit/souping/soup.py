"""A soup: the weighted average of every parameter of finished runs (Wortsman et al. 2022, arXiv 2203.05482)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from sft_toolkit.errors import UsageError
from sft_toolkit.shards.whole_folder import require_free, whole_folder
from sft_toolkit.souping.checkpoint import in_order
from sft_toolkit.souping.weights_file import TensorRule, TensorWeights
from sft_toolkit.souping.writing import RECIPE, Advance, Blend, OutputOptions, Recipe, ignore, open_inputs, write_models


def soup(
    paths: Sequence[Path],
    weights: Sequence[Fraction],
    target: Path,
    options: OutputOptions,
    advance: Advance = ignore,
    notes: Mapping[str, Any] = {},
    rules: Sequence[TensorRule] = (),
) -> Recipe:
    """Write the average of the checkpoints at `paths` to the folder `target`. Returns what its recipe.json holds.

    `notes` go into the recipe; `rules` give single tensors other weights, see `weights_file`. The order of `paths` does
    not matter. Raises ToolkitError, naming the tensor or the key, for checkpoints that cannot be averaged; nothing is
    written then.
    """
    weight_of = dict(zip(paths, weights, strict=True))
    ordered = in_order(paths)
    ordered_weights = [weight_of[path] for path in ordered]
    given = TensorWeights(tuple(weights), tuple(rules)).in_order([list(paths).index(path) for path in ordered])
    require_free(target, RECIPE, force=options.force)
    require_outside(target, paths)
    inputs = open_inputs(ordered, options.dtype)
    combination = given.combination([parameter.name for parameter in inputs.parameters])
    with whole_folder(target, RECIPE, force=options.force) as folder:
        stated = {"weights_by_tensor": [rule.to_json() for rule in given.rules]} if rules else {}
        blend = Blend(folder, combination, ordered_weights, {"method": "weighted mean", **stated, **notes})
        (recipe,) = write_models(inputs, [blend], options, advance)
    return recipe


def require_distinct(paths: Sequence[Path]) -> None:
    """Raise UsageError where one checkpoint is given twice."""
    seen: dict[Path, Path] = {}
    for path in paths:
        if path.resolve() in seen:
            raise UsageError(f"{path}: given twice", "give it once, with twice the weight in `weights`")
        seen[path.resolve()] = path


def require_outside(target: Path, paths: Sequence[Path]) -> None:
    """Raise UsageError where `--force` would replace an input."""
    for path in paths:
        if path.resolve().is_relative_to(target.resolve()):
            raise UsageError(f"{target}: holds the input {path}", "choose another output folder")
