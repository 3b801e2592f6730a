"""`grade fit`: a student of the teacher's labels, and how well it agrees where it has not seen them.

Two held-out figures: on a random fifth of the prompts, and on data sets that were left out whole. Lexical students
partly learn which data set a prompt is from; the second figure shows how much of the first one is that. Confidences are
calibrated on the data sets that were left out, for a student is surer of what it knows; with one data set only, on the
fifth.
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
from sft_toolkit.labelers.grading_metrics import (
    Agreement,
    agreement,
    calibration_error,
    fitted_temperature,
    tempered,
)
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
class Calibration:
    """Mean confidence and expected calibration error of the confidences that `apply` would write."""

    confidence: float
    error: float


@dataclass(frozen=True)
class Report:
    """Agreement with the teacher on prompts (`seen` data sets) and on data sets (`unseen`) that the fit left out.

    `unseen` is None where there is one data set only. `calibrations` are those of `seen`, and of `unseen` if there is.
    """

    levels: tuple[str, ...]
    seen: Agreement
    unseen: Agreement | None
    datasets: int
    calibrations: tuple[Calibration, ...] = ()

    @property
    def collapses(self) -> bool:
        """True where little of what was learned carries over: half the kappa is lost, or the majority is as good."""
        if self.unseen is None:
            return False
        return self.unseen.kappa < _COLLAPSE * self.seen.kappa or self.unseen.exact <= self.unseen.majority

    @property
    def useless(self) -> bool:
        """True where always giving the commonest level agrees as well: on data sets left out, or the random split."""
        found = self.seen if self.unseen is None else self.unseen
        return found.exact <= found.majority

    @property
    def splits(self) -> dict[str, Agreement]:
        found = {"random split": self.seen, "data sets left out": self.unseen}
        return {name: split for name, split in found.items() if split is not None}

    def to_json(self) -> dict[str, Any]:
        figures = {name: _figures(found) for name, found in self.splits.items()}
        for split, calibration in zip(figures.values(), self.calibrations, strict=False):
            split.update(confidence=round(calibration.confidence, 4), calibration_error=round(calibration.error, 4))
        return {"datasets": self.datasets, "collapses": self.collapses, "useless": self.useless, **figures}


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
    report, temperature = _evaluate(student, labelled, column.levels, seed)
    arrays = students().STUDENTS[student].fit(labelled.prompts, labelled.levels, len(column.levels))
    return Grader(student, column.levels, dict(arrays), report.to_json(), temperature), report, counters


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


def _evaluate(student: ClassifierKind, labelled: Labelled, levels: tuple[str, ...], seed: int) -> tuple[Report, float]:
    """The report, and the temperature of confidences.

    Equal prompts have equal draws, so that none is on both sides of the random split.
    """
    held_out = labelled.draws < _HELD_OUT
    if not held_out.any() or held_out.all():
        held_out = labelled.draws <= np.median(labelled.draws)
    seen = _left_out(student, labelled, [held_out], len(levels))
    names = sorted(set(labelled.datasets), key=lambda name: (key(seed, "grade folds", name), name))
    if len(names) == 1:
        temperature = fitted_temperature(seen.true, seen.chances)
        calibration = _calibration(seen, np.full(len(seen.true), temperature))
        return Report(levels, seen.agreement, None, 1, (calibration,)), temperature
    fold_of = {name: place % _FOLDS for place, name in enumerate(names)}
    folds = np.array([fold_of[name] for name in labelled.datasets])
    unseen = _left_out(student, labelled, [folds == fold for fold in range(min(_FOLDS, len(names)))], len(levels))
    temperature = fitted_temperature(unseen.true, unseen.chances)
    calibrations = (
        _calibration(seen, np.full(len(seen.true), temperature)),
        _calibration(unseen, _temperatures_by_others(unseen)),
    )
    return Report(levels, seen.agreement, unseen.agreement, len(names), calibrations), temperature


@dataclass(frozen=True)
class _LeftOut:
    """Labels and chances of what fits left out. true, fold: int[n]; chances: float64[n, levels]."""

    true: npt.NDArray[np.int64]
    fold: npt.NDArray[np.int64]
    chances: npt.NDArray[np.float64]

    @property
    def agreement(self) -> Agreement:
        return agreement(self.true, self.chances.argmax(axis=1), self.chances.shape[1])


def _left_out(
    student: ClassifierKind, labelled: Labelled, held_outs: list[npt.NDArray[np.bool_]], count: int
) -> _LeftOut:
    """All that is held out, each time graded by a student that was fitted on the rest."""
    kind = students().STUDENTS[student]
    true, chances = [], []
    for held_out in held_outs:
        arrays = kind.fit(labelled.prompts[~held_out], labelled.levels[~held_out], count)
        chances.append(kind.probabilities(arrays, labelled.prompts[held_out]))
        true.append(labelled.levels[held_out])
    folds = np.repeat(np.arange(len(true)), [len(part) for part in true])
    return _LeftOut(np.concatenate(true), folds, np.concatenate(chances))


def _temperatures_by_others(found: _LeftOut) -> npt.NDArray[np.float64]:
    """For each prompt the temperature fitted on the other folds, so that its error is one on data not seen."""
    temperatures = np.empty(len(found.true))
    for fold in np.unique(found.fold):
        inside = found.fold == fold
        temperatures[inside] = fitted_temperature(found.true[~inside], found.chances[~inside])
    return temperatures


def _calibration(found: _LeftOut, temperatures: npt.NDArray[np.float64]) -> Calibration:
    chances = tempered(found.chances, temperatures[:, None])
    return Calibration(float(chances.max(axis=1).mean()), calibration_error(found.true, chances))


def _figures(found: Agreement) -> dict[str, Any]:
    figures = {"exact": found.exact, "within_one": found.within_one, "kappa": found.kappa, "majority": found.majority}
    known = {name: None if np.isnan(value) else round(value, 4) for name, value in figures.items()}
    return {"prompts": found.prompts, **known, "confusion": found.confusion.tolist()}
