"""From checkpoints that agree to whole model folders: weights, index, side files, recipe."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import sft_toolkit
from sft_toolkit.choices import Dtype, require_choices
from sft_toolkit.errors import UsageError
from sft_toolkit.shards.atomic import sync
from sft_toolkit.shards.whole_folder import require_space
from sft_toolkit.souping.agreed_tensors import Parameter, agreed_parameters
from sft_toolkit.souping.checkpoint import Checkpoint, open_checkpoint
from sft_toolkit.souping.model_files import create_model_files
from sft_toolkit.souping.side_files import copy_side_files, require_same_meaning
from sft_toolkit.souping.streaming import write_combinations
from sft_toolkit.souping.tied_head import without_tied_head
from sft_toolkit.souping.weights import Combination

RECIPE = "recipe.json"
_MOST_THREADS = 16

Advance = Callable[[int], None]
"""Hears how many elements have been written since it last heard."""


def ignore(elements: int) -> None:
    """An Advance for those who do not watch."""


Recipe = dict[str, Any]
"""What recipe.json holds."""


@dataclass(frozen=True)
class OutputOptions:
    """How models are written. `dtype` None keeps each tensor's own; `max_shard_size` in bytes; 0 threads: by cores."""

    dtype: Dtype | None = None
    max_shard_size: int = 5_000_000_000
    force: bool = False
    threads: int = 0

    def __post_init__(self) -> None:
        require_choices(self)

    @property
    def thread_count(self) -> int:
        return self.threads or min(len(os.sched_getaffinity(0)), _MOST_THREADS)


def parse_size(text: str) -> int:
    """Bytes: "5GB", "500 MB", "2GiB" or a plain number. Raises UsageError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)B?", text.strip().upper())
    size = 0
    if match:
        number, prefix, binary = match.groups()
        size = int(Fraction(number) * (1024 if binary else 1000) ** " KMGT".index(prefix or " "))
    if size < 1:
        raise UsageError(f"{text} is not a file size", "write it as in 5GB or 500MB")
    return size


@dataclass(frozen=True)
class Inputs:
    """Checkpoints that may be averaged, in the order in which they are added, and their tensors."""

    checkpoints: list[Checkpoint]
    parameters: list[Parameter]

    @property
    def elements(self) -> int:
        return sum(parameter.elements for parameter in self.parameters)

    @property
    def output_size(self) -> int:
        """Bytes of one output's tensors."""
        return sum(parameter.size for parameter in self.parameters)


def open_inputs(paths: Sequence[Path], dtype: str | None) -> Inputs:
    """Read all headers and compare. Raises ToolkitError for what SEMANTICS of merging refuses."""
    checkpoints = [open_checkpoint(path) for path in paths]
    require_same_meaning(checkpoints)
    checkpoints = [without_tied_head(checkpoint) for checkpoint in checkpoints]
    return Inputs(checkpoints, agreed_parameters(checkpoints, dtype))


@dataclass(frozen=True)
class Blend:
    """One model to write: `weights` of the inputs as its recipe states them, and what else the recipe holds."""

    folder: Path
    combination: Combination
    weights: Sequence[Fraction]
    notes: Mapping[str, Any]


def write_models(inputs: Inputs, blends: Sequence[Blend], options: OutputOptions, advance: Advance) -> list[Recipe]:
    """Write every blend, all in one pass over the inputs. Returns their recipes."""
    for blend in blends:
        blend.folder.mkdir(exist_ok=True)
    require_space(blends[0].folder, len(blends) * inputs.output_size)
    models = [create_model_files(blend.folder, inputs.parameters, options.max_shard_size) for blend in blends]
    combinations = [blend.combination for blend in blends]
    digests = write_combinations(inputs.parameters, combinations, models, options.thread_count, advance)
    recipes = []
    for blend, model in zip(blends, models, strict=True):
        model.finish()
        side_files = copy_side_files(inputs.checkpoints, blend.folder, options.dtype)
        recipe = {
            "tool": f"kolibri-sft {sft_toolkit.__version__}",
            **blend.notes,
            "inputs": [
                {"path": str(checkpoint.path), "weight": str(weight), "xxh3_128": digest}
                for checkpoint, weight, digest in zip(inputs.checkpoints, blend.weights, digests, strict=True)
            ],
            "side_files": side_files,
            "tensors": _account(inputs),
        }
        write_json(blend.folder / RECIPE, recipe)
        sync(blend.folder)
        recipes.append(recipe)
    return recipes


def _account(inputs: Inputs) -> dict[str, Any]:
    """What became of each tensor of any input. `from` is its dtype there, one for each that occurs."""
    account: dict[str, Any] = {
        parameter.name: {
            "action": "averaged" if parameter.averaged else "copied",
            "from": " ".join(dict.fromkeys(source.dtype for source in parameter.sources)),
            "to": parameter.dtype,
            "shape": parameter.shape,
        }
        for parameter in inputs.parameters
    }
    for checkpoint in inputs.checkpoints:
        for name, why in checkpoint.left_out.items():
            entry = account.setdefault(name, {"action": "left out", "why": why, "in": []})
            entry["in"].append(str(checkpoint.path))
    return dict(sorted(account.items()))


def write_json(path: Path, value: Any) -> None:
    """Write a file for people and programs, forced to the disk."""
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sync(path)
