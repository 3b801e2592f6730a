"""The mixture file of `mix`: which data sets, how much of each, and what is left out of them.

tokens = 2_000_000            # all together; what fixed budgets leave of it is shared out by weight
max_epochs = 4                # how often a record may be taken; 1 unless said otherwise
temperature = 2               # weights times the size in tokens to the power of 1/2; not at all unless set

[datasets.maths]
weight = 3
max_per_prompt = 2            # records of one prompt, per epoch
where = { difficulty = ["medium", "hard"], length = { max = 32768 } }

[datasets.agents]
from = ["tau", "swe"]         # the data sets that records name; by default the name of the table
weight = 1

[datasets.chat]
epochs = 0.5                  # or tokens = 100_000
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import msgspec

from sft_toolkit.errors import UsageError
from sft_toolkit.toml_file import read_toml

Count = Annotated[int, msgspec.Meta(ge=1)]
Scalar = str | int | float | bool
_AMOUNTS = ("weight", "tokens", "epochs")


class Range(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Numbers from `min` to `max`, both included; either may be open."""

    min: int | float | None = None
    max: int | float | None = None

    def __post_init__(self) -> None:
        if self.min is None and self.max is None:
            raise ValueError("a range needs min or max")

    def holds(self, value: Any) -> bool:
        number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        return number and (self.min is None or value >= self.min) and (self.max is None or value <= self.max)


class Ingredient(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """One table of the file: whose records, which of them, and how much."""

    sources: list[str] | None = msgspec.field(default=None, name="from")
    where: dict[str, Scalar | list[Scalar] | Range] = {}
    weight: Annotated[float, msgspec.Meta(ge=0)] | None = None
    tokens: Count | None = None
    epochs: Annotated[float, msgspec.Meta(gt=0)] | None = None
    max_epochs: Count | None = None
    max_tokens: Count | None = None
    max_records: Count | None = None
    max_per_prompt: Count | None = None

    def __post_init__(self) -> None:
        given = [name for name in _AMOUNTS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of {', '.join(_AMOUNTS)}; it has {' and '.join(given) or 'none'}")
        if any(value is not None and not math.isfinite(value) for value in (self.weight, self.epochs)):
            raise ValueError("weight and epochs are finite numbers")
        if self.epochs is not None and self.max_epochs is not None:
            raise ValueError("epochs says how often records are taken: leave out max_epochs")

    def admits(self, value_of: Callable[[str], Any]) -> bool:
        """True where a record's values pass every filter; `value_of` gives that of a column, None where it has none."""
        return all(_matches(value_of(column), wanted) for column, wanted in self.where.items())


class _File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    datasets: Annotated[dict[str, Ingredient], msgspec.Meta(min_length=1)]
    tokens: Count | None = None
    max_epochs: Count = 1
    temperature: Annotated[float, msgspec.Meta(gt=0)] | None = None

    def __post_init__(self) -> None:
        _require_temperature(self.temperature)


@dataclass(frozen=True)
class Mixture:
    """Ingredients by name, in the order of the file. `tokens` is the total, where there is one.

    `temperature` T multiplies each weight by the size of its data set in tokens to the power of 1/T: with equal weights
    1 keeps the natural proportions, and the higher T, the nearer they come to equal shares.
    """

    ingredients: Mapping[str, Ingredient]
    tokens: int | None = None
    max_epochs: int = 1
    temperature: float | None = None

    @property
    def weights(self) -> dict[str, Fraction]:
        """The weights of the ingredients that have one, as they are written: not yet summing to one."""
        weights = {name: ingredient.weight for name, ingredient in self.ingredients.items()}
        return {name: Fraction(repr(weight)) for name, weight in weights.items() if weight is not None}

    @property
    def by_dataset(self) -> dict[str, list[int]]:
        """For each data set, the places of the ingredients that may take its records, in order."""
        places: dict[str, list[int]] = {}
        for place, (name, ingredient) in enumerate(self.ingredients.items()):
            for source in ingredient.sources or [name]:
                places.setdefault(source, []).append(place)
        return places

    @property
    def columns(self) -> list[str]:
        """All columns that filters look at."""
        return sorted({column for ingredient in self.ingredients.values() for column in ingredient.where})

    def reweighted(self, weights: Mapping[str, Fraction]) -> Mixture:
        """The mixture with other weights, one for each ingredient that has a weight. Raises UsageError otherwise, and
        where a temperature would change them."""
        if self.temperature is not None:
            raise UsageError("weights that were chosen are not changed by a `temperature`", "leave the temperature out")
        if weights.keys() != self.weights.keys():
            odd = sorted(weights.keys() ^ self.weights.keys())
            raise UsageError(f"{odd[0]}: weighted in one of mixture file and weights, not in both")
        changed = {
            name: msgspec.structs.replace(ingredient, weight=float(weights[name])) if name in weights else ingredient
            for name, ingredient in self.ingredients.items()
        }
        return replace(self, ingredients=changed)

    def tempered(self, temperature: float) -> Mixture:
        """The mixture with a temperature. Raises UsageError where it has one, or none of its data sets has a weight."""
        _require_temperature(temperature)
        if self.temperature is not None:
            raise UsageError("`temperature` is given twice", "leave it out here or in the mixture file")
        if not any(self.weights.values()):
            raise UsageError("`temperature` changes weights, and no data set has one")
        return replace(self, temperature=temperature)

    def to_json(self) -> dict[str, Any]:
        """What decides which records are taken, JSON-ready."""
        ingredients = {name: msgspec.to_builtins(ingredient) for name, ingredient in self.ingredients.items()}
        stated = {"tokens": self.tokens, "max_epochs": self.max_epochs, "datasets": ingredients}
        return stated if self.temperature is None else {**stated, "temperature": self.temperature}


def read_mixture(path: Path) -> Mixture:
    """Read a mixture file. Raises UsageError saying what is wrong where it is none."""
    file = read_toml(path, _File)
    mixture = Mixture(file.datasets, file.tokens, file.max_epochs, file.temperature)
    if mixture.tokens is not None and not any(mixture.weights.values()):
        raise UsageError(f"{path}: tokens is shared out by weight, and no data set has one")
    if mixture.temperature is not None and not any(mixture.weights.values()):
        raise UsageError(f"{path}: temperature changes weights, and no data set has one")
    return mixture


def _require_temperature(temperature: float | None) -> None:
    """Raise UsageError for one that cannot be: not above 0, or not finite."""
    if temperature is not None and not (0 < temperature < math.inf):
        raise UsageError(f"`temperature` {temperature}: not a finite number above 0")


def _matches(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Range):
        return wanted.holds(value)
    return any(_equal(value, one) for one in (wanted if isinstance(wanted, list) else [wanted]))


def _equal(value: Any, wanted: Scalar) -> bool:
    """Equality that does not take true for 1; a decimal is compared by its digits."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    return bool(
        value == (Decimal(repr(wanted)) if isinstance(wanted, float) and isinstance(value, Decimal) else wanted)
    )
