"""First pass of `effort`: the edges of all groups from the reasoning lengths of all records.

What is kept is how often each length occurs in each group, so memory grows with distinct lengths, not with records,
and the edges depend on neither order nor blocks nor workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import polars as pl

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError
from sft_toolkit.labelers.effort import MIN_GROUP, fit
from sft_toolkit.running.options import RunOptions
from sft_toolkit.running.passes import Batches, measure_blocks
from sft_toolkit.stage import Counters, Outcome
from sft_toolkit.stages.effort.edges import FittedEdges
from sft_toolkit.stages.effort.lengths import LengthSource
from sft_toolkit.stages.effort.opening_prompts import OpeningLengths, opening_hash
from sft_toolkit.stages.effort.store import LengthStore

HISTOGRAM_SCHEMA = {"dataset": pl.Categorical, "difficulty": pl.Categorical, "length": pl.Int32, "count": pl.Int64}
_FOLD_ROWS = 1 << 20

REASONED, WITHOUT_REASONING = "exchanges_with_reasoning", "exchanges_without_reasoning"


def fit_edges(
    lengths: LengthSource,
    run: RunOptions,
    store: LengthStore | None = None,
    min_group: int = MIN_GROUP,
    openings: OpeningLengths | None = None,
) -> tuple[FittedEdges, Counters]:
    """Fit on all inputs of the run, and keep the lengths in `store`, and in `openings` those of first exchanges.

    Raises as `runner.run_stage` does.
    """
    histogram, counters = Histogram(), Counters()
    for block, block_counters in measure_blocks(partial(_measure, lengths), run):
        histogram.add(block.histogram)
        if store is not None:
            store.add(block.ids, block.lengths)
        if openings is not None:
            openings.add(*block.openings)
        counters.add(block_counters)
        run.progress(counters)
    reasoned, without = counters.notes[REASONED], counters.notes[WITHOUT_REASONING]
    return FittedEdges(fit(histogram.folded(), min_group), lengths.identity, reasoned, without), counters


@dataclass(frozen=True, slots=True)
class _BlockLengths:
    """How often each length above 0 occurs in each group of a block, and the lengths of each of its records.

    `openings`: of each record that asks something, the hash of its first question, and the length that follows.
    """

    histogram: pl.DataFrame
    ids: list[str]
    lengths: list[list[int]]
    openings: tuple[list[int], list[int]]


def _measure(lengths: LengthSource, batches: Batches, outcome: Outcome) -> _BlockLengths:
    rows: Counter[tuple[str, str, int]] = Counter()
    ids, measured = [], []
    openings: tuple[list[int], list[int]] = [], []
    for conversation, found in _sound(lengths, batches, outcome):
        outcome.counters.records_out += 1
        ids.append(conversation.id)
        measured.append(found)
        opening = opening_hash(conversation)
        if opening is not None:
            openings[0].append(opening)
            openings[1].append(found[0])
        reasoned = [length for length in found if length]
        outcome.note(REASONED, len(reasoned))
        outcome.note(WITHOUT_REASONING, len(found) - len(reasoned))
        rows.update((*group_of(conversation), length) for length in reasoned)
    histogram = pl.DataFrame([(*key, count) for key, count in rows.items()], HISTOGRAM_SCHEMA, orient="row")
    return _BlockLengths(histogram, ids, measured, openings)


def _sound(lengths: LengthSource, batches: Batches, outcome: Outcome) -> Iterator[tuple[Conversation, list[int]]]:
    for batch in batches:
        for conversation, found in zip(batch, lengths.measure(batch), strict=True):
            if isinstance(found, RecordError):
                outcome.fault(conversation, found)
            else:
                yield conversation, found


def group_of(conversation: Conversation) -> tuple[str, str]:
    """Reference group of a record: its data set and difficulty, "" where it names none."""
    return conversation.dataset or "", conversation.difficulty or ""


class Histogram:
    """A sum of frames, folded into one whenever the unfolded ones outgrow it: each row is folded O(log n) times."""

    def __init__(self) -> None:
        self._frames = [pl.DataFrame(schema=HISTOGRAM_SCHEMA)]
        self._unfolded = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Add rows (dataset, difficulty, length, count)."""
        self._frames.append(frame)
        self._unfolded += frame.height
        if self._unfolded > max(_FOLD_ROWS, self._frames[0].height):
            self.folded()

    def folded(self) -> pl.DataFrame:
        """The sum so far: one row per group and length."""
        total = pl.concat(self._frames).group_by("dataset", "difficulty", "length").agg(pl.col("count").sum())
        self._frames, self._unfolded = [total], 0
        return total
