"""A file of weights by tensor: other weights for some layers or kinds of tensors.

[default]                     # by the names of the checkpoints; equal weights unless set
base = 1
tuned = 1

[[tensors]]                   # the first table that fits a tensor gives its weights
match = "*.mlp.*"             # a shell's pattern for the whole name; every tensor unless set
layers = "0-11"               # those layers alone; unset: any tensor, with a layer or without
weights = { tuned = 1 }       # a checkpoint that is not named has weight 0
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import msgspec

from sft_toolkit.errors import UsageError
from sft_toolkit.souping.weights import Combination, parse_weight, weighted_mean
from sft_toolkit.toml_file import read_toml

_LAYER = re.compile(r"(?:^|\.)(?:layers?|h|blocks?)\.(\d+)\.")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_Weights = Annotated[dict[str, str | int], msgspec.Meta(min_length=1)]


class _Table(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    weights: _Weights
    match: str = "*"
    layers: str | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    tensors: Annotated[list[_Table], msgspec.Meta(min_length=1)]
    default: _Weights | None = None


@dataclass(frozen=True)
class TensorRule:
    """Weights, one for each checkpoint, of the tensors that fit `match` and lie in `layers`, both ends included."""

    match: str
    layers: tuple[int, int] | None
    weights: tuple[Fraction, ...]

    def fits(self, tensor: str) -> bool:
        if not fnmatchcase(tensor, self.match):
            return False
        if self.layers is None:
            return True
        layer = _LAYER.search(tensor)
        return layer is not None and self.layers[0] <= int(layer[1]) <= self.layers[1]

    def to_json(self) -> dict[str, Any]:
        return {"match": self.match, "layers": self.layers, "weights": list(map(str, self.weights))}


@dataclass(frozen=True)
class TensorWeights:
    """`default` weights, one for each checkpoint, and the `rules` for single tensors, of which the first counts."""

    default: tuple[Fraction, ...]
    rules: tuple[TensorRule, ...] = ()

    def combination(self, tensors: Sequence[str]) -> Combination:
        """How the tensors are averaged. Raises UsageError for a rule that gives none of them its weights."""
        ruled: dict[str, Combination] = {}
        used = set()
        for place, rule in enumerate(self.rules):
            mean = weighted_mean(rule.weights)
            for name in tensors:
                if name not in ruled and rule.fits(name):
                    ruled[name] = mean
                    used.add(place)
        unused = [rule for place, rule in enumerate(self.rules) if place not in used]
        if unused:
            shown = f"match {unused[0].match}" + (f", layers {unused[0].layers}" if unused[0].layers else "")
            raise UsageError(
                f"weights of {shown}: no tensor is left that they fit", f"tensors are named as {min(tensors)}"
            )
        return weighted_mean(self.default, ruled)

    def in_order(self, places: Sequence[int]) -> TensorWeights:
        """The same for the checkpoints in another order: `places` are those that they have now."""

        def ordered(weights: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
            return tuple(weights[place] for place in places)

        rules = tuple(TensorRule(rule.match, rule.layers, ordered(rule.weights)) for rule in self.rules)
        return TensorWeights(ordered(self.default), rules)


def read_weights(path: Path, checkpoints: Sequence[Path]) -> TensorWeights:
    """Read a file of weights for these checkpoints, which it names by their last part.

    Raises UsageError where it is none, names another checkpoint, or two checkpoints have one name.
    """
    names = [checkpoint.name for checkpoint in checkpoints]
    if len(set(names)) < len(names):
        raise UsageError(f"{path}: two checkpoints have one name among {', '.join(names)}", "rename one, or link to it")
    file = read_toml(path, _File, parse_float=str)
    default = tuple(Fraction(1) for _ in names) if file.default is None else _given(path, file.default, names)
    rules = [TensorRule(one.match, _layers(path, one.layers), _given(path, one.weights, names)) for one in file.tensors]
    return TensorWeights(default, tuple(rules))


def _given(path: Path, weights: Mapping[str, str | int], names: Sequence[str]) -> tuple[Fraction, ...]:
    unknown = sorted(weights.keys() - set(names))
    if unknown:
        raise UsageError(f"{path}: {unknown[0]} is no checkpoint", f"they are {', '.join(names)}")
    return tuple(parse_weight(weights.get(name, 0)) for name in names)


def _layers(path: Path, text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = _RANGE.fullmatch(text)
    if found is None or int(found[2] or found[1]) < int(found[1]):
        raise UsageError(f"{path}: layers {text!r} is no range", 'write it as in "0-11" or "5"')
    return int(found[1]), int(found[2] or found[1])
