"""`grade fit`: a student of the teacher's labels, and how well it agrees where it has not seen them.

Two held-out figures: on a random fifth of the prompts, and on data sets that were left out whole. Lexical students
partly learn which data set a prompt is from; the second figure shows how much of the first one is that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sft_toolkit.choices import ClassifierKind
from sft_toolkit.conversation import Conversation
from sft_toolkit.draws import key, uniform
from sft_toolkit.errors import RecordError, ToolkitError
from sft_toolkit.labelers.grading_metrics import Agreement, agreement
from sft_toolkit.running.options import RunOptions
from sft_toolkit.running.passes import Batches, measure_blocks
from sft_toolkit.stage import Counters, Outcome
from sft_toolkit.stages.grade.labels import LabelColumn, prompt_text, settle
from sft_toolkit.stages.grade.model import Grader, students

_HELD_OUT = 0.2
_FOLDS = 5
_FEWEST = 20
_COLLAPSE = 0.5


@dataclass(frozen=True)
class Labelled:
    """Prompts and their labels. prompts: labelers.difficulty.Prompts; levels: int64[n]; draws: float64[n]."""

    prompts: Any
    levels: npt.NDArray[np.int64]
    datasets: list[str]
    draws: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Report:
    """Agreement with the teacher on prompts (`seen` data sets) and on data sets (`unseen`) that the fit left out.

    `unseen` is None where there is one data set only.
    """

    levels: tuple[str, ...]
    seen: Agreement
    unseen: Agreement | None
    datasets: int

    @property
    def collapses(self) -> bool:
        """True where little of what was learned carries over: half the kappa is lost, or the majority is as good."""
        if self.unseen is None:
            return False
        return self.unseen.kappa < _COLLAPSE * self.seen.kappa or self.unseen.exact <= self.unseen.majority

    def to_json(self) -> dict[str, Any]:
        splits = {"random split": self.seen, "data sets left out": self.unseen}
        return {
            "datasets": self.datasets,
            "collapses": self.collapses,
            **{name: _figures(found) for name, found in splits.items() if found is not None},
        }


def fit_grader(
    student: ClassifierKind, column: LabelColumn, seed: int, run: RunOptions
) -> tuple[Grader, Report, Counters]:
    """Fit on all labelled records of the run. Raises ToolkitError where there are too few; as `run_stage` otherwise."""
    labelled, counters = _read(column, seed, run)
    if len(labelled.levels) < _FEWEST or len(np.unique(labelled.levels)) < 2:
        raise ToolkitError(
            f"{len(labelled.levels)} labels of {len(np.unique(labelled.levels))} levels: too few to learn from",
            f"collect {_FEWEST} or more, of two levels at least",
        )
    report = _evaluate(student, labelled, column.levels, seed)
    arrays = students().STUDENTS[student].fit(labelled.prompts, labelled.levels, len(column.levels))
    return Grader(student, column.levels, dict(arrays), report.to_json()), report, counters


def _read(column: LabelColumn, seed: int, run: RunOptions) -> tuple[Labelled, Counters]:
    counters = Counters()
    parts = []
    for part, block_counters in measure_blocks(partial(_measure, column, seed), run):
        parts.extend(part)
        counters.add(block_counters)
        run.progress(counters)
    if not parts:
        raise ToolkitError(f"no record has a label under {column.name}", "kolibri-sft grade collect writes them")
    joined = Labelled(
        students().stacked([part.prompts for part in parts]),
        np.concatenate([part.levels for part in parts]),
        [name for part in parts for name in part.datasets],
        np.concatenate([part.draws for part in parts]),
    )
    return joined, counters


def _measure(column: LabelColumn, seed: int, batches: Batches, outcome: Outcome) -> list[Labelled]:
    return [part for batch in batches for part in _labelled(column, seed, batch, outcome)]


def _labelled(column: LabelColumn, seed: int, batch: list[Conversation], outcome: Outcome) -> Iterator[Labelled]:
    """What the labelled records of a batch give, if there are any."""
    texts, levels, datasets = [], [], []
    for conversation in batch:
        try:
            votes, text = column.votes(conversation), prompt_text(conversation)
        except RecordError as error:
            outcome.fault(conversation, error)
            continue
        if not votes:
            outcome.note("unlabelled")
            continue
        outcome.counters.records_out += 1
        texts.append(text)
        levels.append(column.levels.index(settle(votes, column.levels)))
        datasets.append(conversation.dataset or "")
    if texts:
        draws = np.array([uniform(seed, "grade fit", text) for text in texts])
        yield Labelled(students().prompts_of(texts), np.array(levels, np.int64), datasets, draws)


def _evaluate(student: ClassifierKind, labelled: Labelled, levels: tuple[str, ...], seed: int) -> Report:
    """Equal prompts have equal draws, so that none is on both sides of the random split."""
    held_out = labelled.draws < _HELD_OUT
    if not held_out.any() or held_out.all():
        held_out = labelled.draws <= np.median(labelled.draws)
    seen = _agreement(student, labelled, [held_out], len(levels))
    names = sorted(set(labelled.datasets), key=lambda name: (key(seed, "grade folds", name), name))
    unseen = None
    if len(names) > 1:
        fold_of = {name: place % _FOLDS for place, name in enumerate(names)}
        folds = np.array([fold_of[name] for name in labelled.datasets])
        unseen = _agreement(student, labelled, [folds == fold for fold in range(min(_FOLDS, len(names)))], len(levels))
    return Report(levels, seen, unseen, len(names))


def _agreement(
    student: ClassifierKind, labelled: Labelled, held_outs: list[npt.NDArray[np.bool_]], count: int
) -> Agreement:
    """Agreement over all that is held out, each time by a student that was fitted on the rest."""
    kind = students().STUDENTS[student]
    true, given = [], []
    for held_out in held_outs:
        arrays = kind.fit(labelled.prompts[~held_out], labelled.levels[~held_out], count)
        given.append(kind.probabilities(arrays, labelled.prompts[held_out]).argmax(axis=1))
        true.append(labelled.levels[held_out])
    return agreement(np.concatenate(true), np.concatenate(given), count)


def _figures(found: Agreement) -> dict[str, Any]:
    figures = {"exact": found.exact, "within_one": found.within_one, "kappa": found.kappa, "majority": found.majority}
    known = {name: None if np.isnan(value) else round(value, 4) for name, value in figures.items()}
    return {"prompts": found.prompts, **known, "confusion": found.confusion.tolist()}
