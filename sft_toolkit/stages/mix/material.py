"""What is mixed, whatever its kind: what is noted about each row, and the ingredient that takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sft_toolkit.errors import UsageError
from sft_toolkit.shards.schemas import kind_of
from sft_toolkit.shards.segments import open_arrow
from sft_toolkit.shards.sources import Block, Source
from sft_toolkit.stage import Outcome
from sft_toolkit.stages.mix.choice import FILTERED, NOT_IN_MIXTURE
from sft_toolkit.stages.mix.mixture_file import Mixture

FoundRow = tuple[Any, str]
"""A row that is taken, a Conversation or a dict of the shard schema's columns, and where it stands in the input."""


@dataclass(frozen=True, slots=True)
class BlockNotes:
    """A block's rows: notes: NOTE[n], ids of the same length, and what became of rows that are faulty.

    `datasets` are those that rows name, with "" where a row names none.
    """

    notes: NDArray[np.void]
    ids: list[str]
    datasets: set[str]
    outcome: Outcome


class Material(Protocol):
    """Rows of one kind. Picklable: workers note and read."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def identity(self) -> dict[str, str]:
        """Where lengths come from, for the manifest."""

    def note(self, block: Block, quarantine: bool) -> BlockNotes:
        """Look at every row of a block. Raises RecordError for a faulty one unless it is to be rejected."""

    def take(self, block: Block, wanted: NDArray[np.bool_]) -> Iterator[FoundRow]:
        """The wanted ones of the rows that `note` saw, in order."""


class Placing:
    """Finds the ingredient that takes a row: the first of those for its data set whose filters it passes."""

    def __init__(self, mixture: Mixture) -> None:
        self._ingredients = list(mixture.ingredients.values())
        self._by_dataset = mixture.by_dataset

    def __call__(self, dataset: str | None, value_of: Callable[[str], Any]) -> int:
        places = self._by_dataset.get(dataset or "", [])
        for place in places:
            if self._ingredients[place].admits(value_of):
                return place
        return FILTERED if places else NOT_IN_MIXTURE


def caps_prompts(mixture: Mixture) -> bool:
    return any(ingredient.max_per_prompt for ingredient in mixture.ingredients.values())


def holds_tokens(source: Source) -> bool:
    """True where all inputs are token shards, False where none is. Raises UsageError where some are."""
    kinds = {name: _kind(name) for name in source.inputs}
    tokens = [name for name, kind in kinds.items() if kind == "tokens"]
    packed = [name for name, kind in kinds.items() if kind == "packed"]
    if packed:
        raise UsageError(f"{packed[0]}: packed shards cannot be mixed", "mix token shards, then pack them")
    if tokens and len(tokens) < len(kinds):
        other = next(name for name in kinds if name not in tokens)
        raise UsageError(f"{tokens[0]} holds tokens and {other} records", "mix one or the other")
    return bool(tokens)


def _kind(name: str) -> str | None:
    if not name.endswith(".arrow"):
        return None
    path = Path(name)
    with pa.memory_map(name) as source:
        first = next(open_arrow(path, source), None)
        return None if first is None else kind_of(first.schema)
