"""The account of each data set: what `stats` adds up, and the row that it gives of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

QUANTILES = (10, 30, 50, 70, 90)
"""Percentiles of reasoning lengths that are shown; between those of 30 and 70 lie the medium efforts."""


@dataclass(slots=True)
class DataSetCounts:
    """Counts of one data set, those of records first, then those of token or packed shards.

    `turns` are assistant messages, `trained_turns` those with loss, `masked` the others by reason. `reasoning` holds
    how often each length above 0 occurs, `without_reasoning` how many exchanges have none. `efforts` are labels of
    exchanges, or, of tokens, of documents. `languages` are verdicts on turns, as "de stays".
    """

    records: int = 0
    exchanges: int = 0
    turns: int = 0
    trained_turns: int = 0
    masked: Counter[str] = field(default_factory=Counter)
    reasoning: Counter[int] = field(default_factory=Counter)
    without_reasoning: int = 0
    efforts: Counter[str] = field(default_factory=Counter)
    difficulties: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    documents: int = 0
    tokens: int = 0
    loss_tokens: int = 0

    def add(self, other: DataSetCounts) -> None:
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if isinstance(mine, Counter):
                mine.update(theirs)
            else:
                setattr(self, each.name, mine + theirs)

    def quantiles(self) -> dict[str, float]:
        """Percentiles of reasoning lengths by linear interpolation, and the longest; empty without reasoning."""
        if not self.reasoning:
            return {}
        lengths = np.array(sorted(self.reasoning))
        ends = np.cumsum([self.reasoning[int(length)] for length in lengths])
        last = int(ends[-1]) - 1
        ranks = np.array(QUANTILES) / 100 * last
        below, above = (lengths[np.searchsorted(ends, place, side="right")] for place in (ranks // 1, -(-ranks // 1)))
        values = below + (above - below) * (ranks % 1)
        named = {f"p{percent}": float(value) for percent, value in zip(QUANTILES, values, strict=True)}
        return {**named, "longest": float(lengths[-1])}


Counts = Mapping[str, DataSetCounts]


def total(counts: Counts) -> DataSetCounts:
    """The sum over all data sets."""
    summed = DataSetCounts()
    for one in counts.values():
        summed.add(one)
    return summed


def of_records(counts: DataSetCounts) -> dict[str, Any]:
    """What records hold, by column."""
    return {
        "records": counts.records,
        "exchanges": counts.exchanges,
        "turns": counts.turns,
        "trained_turns": counts.trained_turns,
        "masked_turns": _sorted(counts.masked),
        "exchanges_with_reasoning": counts.reasoning.total(),
        "exchanges_without_reasoning": counts.without_reasoning,
        "reasoning": counts.quantiles(),
        "efforts": _sorted(counts.efforts),
        "difficulties": _sorted(counts.difficulties),
        "languages": _sorted(counts.languages),
    }


def of_documents(counts: DataSetCounts, *, labelled: bool) -> dict[str, Any]:
    """What token shards hold, by column, or packed shards, whose documents are not `labelled`."""
    return {
        "documents": counts.documents,
        "tokens": counts.tokens,
        "loss_tokens": counts.loss_tokens,
        **({"document_efforts": _sorted(counts.efforts)} if labelled else {}),
    }


def _sorted(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items()))
