"""Which records a mixture takes, and how often: whole records, in an order that seed and id alone decide.

Each ingredient's records stand in the order of their keys. As many whole epochs as fit into the budget are taken of
all of them, then the first ones once more: up to the record with which the sum comes nearest to what was asked.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.stages.mix.mixture_file import Ingredient, Mixture

# key: what orders the records; prompt: hash of the prompt; length: tokens; loss_tokens: those with loss, or UNKNOWN;
# ingredient: its place in the mixture, or one of the codes below
NOTE = np.dtype(
    [
        ("key", np.uint64),
        ("prompt", np.uint64),
        ("length", np.int32),
        ("loss_tokens", np.int32),
        ("ingredient", np.int16),
    ]
)
NOT_IN_MIXTURE, FILTERED, FAULTY = -1, -2, -3
UNKNOWN = -1

AS_ASKED = "as asked"
NOTHING_FITS = "no record fits"
NO_WEIGHT = "weight 0"
_UNBOUNDED = 2**62


@dataclass(frozen=True, slots=True)
class Account:
    """What became of an ingredient. `records` and `tokens` are what it had to give, `asked` and `got` are tokens.

    `got_loss`: tokens with loss among `got`; None where nothing says how many they are.
    `why` says what stopped it, or AS_ASKED: then `got` is as near to `asked` as whole records come. NOTHING_FITS:
    `asked` is less than half of its first record, so that none is taken.
    """

    name: str
    records: int
    tokens: int
    asked: int
    got: int
    got_loss: int | None
    taken: int
    why: str

    @property
    def epochs(self) -> float:
        return self.got / self.tokens

    def to_json(self) -> dict[str, Any]:
        names = ("name", "records", "tokens", "asked", "got", "got_loss", "taken", "why")
        return {**{name: getattr(self, name) for name in names}, "epochs": round(self.epochs, 6)}


@dataclass(frozen=True, slots=True)
class Choice:
    """copies: uint32[n], how often each noted record is taken; `left_out` counts the others by reason."""

    copies: NDArray[np.uint32]
    accounts: list[Account]
    left_out: Counter[str]


def choose(notes: NDArray[np.void], mixture: Mixture) -> Choice:
    """Fill the mixture's budgets. notes: NOTE[n].

    Raises ToolkitError where an ingredient has nothing to give, UsageError where fixed budgets exceed the total.
    """
    copies = np.zeros(len(notes), np.uint32)
    left_out: Counter[str] = Counter()
    for reason, code in (("not_in_mixture", NOT_IN_MIXTURE), ("filtered", FILTERED)):
        left_out[reason] = int(np.count_nonzero(notes["ingredient"] == code))
    pools = []
    for place, (name, ingredient) in enumerate(mixture.ingredients.items()):
        rows = np.flatnonzero(notes["ingredient"] == place)
        pool = _Pool(name, ingredient, mixture.max_epochs, rows, notes)
        left_out["over_max_per_prompt"] += len(rows) - len(pool.rows)
        pools.append(pool)
    accounts = []
    for pool, asked in zip(pools, asked_tokens(pools, mixture), strict=True):
        taken, why = pool.take(asked)
        accounts.append(pool.account(asked, taken, why))
        copies[pool.rows] = pool.copies(taken)
    left_out["not_drawn"] = sum(len(pool.rows) for pool in pools) - int(np.count_nonzero(copies))
    return Choice(copies, accounts, +left_out)


class _Pool:
    """The records of one ingredient, in the order in which they are taken."""

    def __init__(
        self, name: str, ingredient: Ingredient, max_epochs: int, rows: NDArray[np.int64], notes: NDArray[np.void]
    ) -> None:
        self.name = name
        self.ingredient = ingredient
        rows = rows[np.argsort(notes["key"][rows], kind="stable")]
        if ingredient.max_per_prompt is not None:
            rows = rows[occurrence(notes["prompt"][rows]) < ingredient.max_per_prompt]
        self.rows = rows
        self._ends = np.cumsum(notes["length"][rows], dtype=np.int64)
        self._loss = notes["loss_tokens"][rows]
        if not self.tokens:
            sources = ", ".join(ingredient.sources or [name])
            raise ToolkitError(
                f"{name}: nothing to take: no record of {sources} is left", "check its filters and the input"
            )
        repeated = ingredient.max_epochs or max_epochs
        self._limits = {
            "max_epochs": len(rows) * repeated if ingredient.epochs is None else _UNBOUNDED,
            "max_records": ingredient.max_records or _UNBOUNDED,
            "max_tokens": _UNBOUNDED if ingredient.max_tokens is None else self._within(ingredient.max_tokens),
        }

    @property
    def tokens(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @property
    def most(self) -> int:
        """Tokens that the caps allow."""
        return self._sum(min(self._limits.values()))

    def take(self, asked: int) -> tuple[int, str]:
        """How many records, repeats included, come nearest to `asked` tokens within the caps, and what stopped them."""
        wanted = self._within(asked)
        if self._sum(wanted + 1) - asked < asked - self._sum(wanted):
            wanted += 1
        name, limit = min(self._limits.items(), key=lambda item: item[1])
        if wanted > limit:
            return limit, name
        if not wanted:
            return 0, NO_WEIGHT if self.ingredient.weight == 0 else NOTHING_FITS
        return wanted, AS_ASKED

    def copies(self, taken: int) -> NDArray[np.uint32]:
        """How often each record is taken where `taken` are, repeats included."""
        epochs, rest = divmod(taken, len(self.rows))
        copies = np.full(len(self.rows), epochs, np.uint32)
        copies[:rest] += 1
        return copies

    def account(self, asked: int, taken: int, why: str) -> Account:
        known = bool((self._loss != UNKNOWN).all())
        got_loss = int(self._loss @ self.copies(taken).astype(np.int64)) if known else None
        return Account(self.name, len(self.rows), self.tokens, asked, self._sum(taken), got_loss, taken, why)

    def _within(self, tokens: int) -> int:
        """Records that fit into `tokens`."""
        epochs, rest = divmod(tokens, self.tokens)
        return epochs * len(self.rows) + int(np.searchsorted(self._ends, rest, side="right"))

    def _sum(self, taken: int) -> int:
        epochs, rest = divmod(taken, len(self.rows))
        return epochs * self.tokens + (int(self._ends[rest - 1]) if rest else 0)


def asked_tokens(pools: list[_Pool], mixture: Mixture) -> list[int]:
    """What the mixture asks of each pool, in tokens; by weight, of the total or else of as much as the caps allow."""
    asked = {pool.name: _fixed(pool) for pool in pools if pool.ingredient.weight is None}
    weights = _tempered(pools, mixture)
    if any(weights.values()):
        shared = _shared(pools, mixture, weights, sum(asked.values()))
        asked |= apportion(shared, weights)
    return [asked.get(pool.name, 0) for pool in pools]


def _tempered(pools: list[_Pool], mixture: Mixture) -> dict[str, Fraction]:
    """The mixture's weights, each times size^(1/T) where it has a temperature T, size in tokens that are there."""
    weights = mixture.weights
    if mixture.temperature is None:
        return weights
    sizes = {pool.name: Fraction(pool.tokens ** (1 / mixture.temperature)) for pool in pools}
    return {name: weight * sizes[name] for name, weight in weights.items()}


def _fixed(pool: _Pool) -> int:
    if pool.ingredient.tokens is not None:
        return pool.ingredient.tokens
    return round(Fraction(repr(pool.ingredient.epochs)) * pool.tokens)


def _shared(pools: list[_Pool], mixture: Mixture, weights: dict[str, Fraction], fixed: int) -> int:
    """Tokens that are shared out by weight."""
    if mixture.tokens is not None:
        if fixed > mixture.tokens:
            raise UsageError(f"fixed budgets of {fixed:,} tokens exceed the total of {mixture.tokens:,}")
        return mixture.tokens - fixed
    scale = min(pool.most / weights[pool.name] for pool in pools if weights.get(pool.name))
    return int(scale * sum(weights.values()))


def apportion(total: int, weights: dict[str, Fraction]) -> dict[str, int]:
    """Whole numbers in proportion to the weights that sum to `total`: the largest remainders are rounded up."""
    whole = sum(weights.values())
    exact = {name: total * weight / whole for name, weight in weights.items()}
    parts = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(exact, key=lambda name: parts[name] - exact[name])
    for name in by_remainder[: total - sum(parts.values())]:
        parts[name] += 1
    return parts


def occurrence(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    """For each element, how many equal ones stand before it: int64[n].

    >>> occurrence(np.array([7, 8, 7, 7], np.uint64)).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(values) else np.empty(0, bool)
    place = np.arange(len(values))
    counts = np.empty(len(values), np.int64)
    counts[order] = place - np.maximum.accumulate(np.where(first, place, 0))
    return counts
