"""Scores as they come in: a JSONL file that grows line by line, so that an interrupted evaluation can resume."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from sft_toolkit import json_text
from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.mergemix.score_command import LOSS, ONLY, Scorer, Scores, metric_name, metric_of
from sft_toolkit.shards.jsonl import whole_lines

MERGED, TRAINED = "scores.jsonl", "trained.jsonl"


@dataclass
class ScoreJournal:
    """Lines {"id", "scorer", "scores": {metric: number}}; a model scored several times has several lines.

    Of a mixture that was trained more than once, lines of the second run say "run": 2, and so on. `runs`: evaluations
    by mixture and run. `scorers`: what made the scores, and whether they are losses, of which a line then says
    "is_loss": true
    """

    path: Path
    runs: dict[str, dict[int, list[Scores]]] = field(default_factory=dict)
    scorers: dict[str, bool] = field(default_factory=dict)

    @property
    def is_loss(self) -> bool:
        """True where lower scores are better."""
        return any(self.scorers.values())

    @property
    def metric(self) -> str:
        """The metric that counts where none is named."""
        return LOSS if self.is_loss else ONLY

    def evaluations(self, name: str, run: int = 1) -> int:
        """How often the model of this run was scored."""
        return len(self.runs.get(name, {}).get(run, ()))

    def add(self, name: str, scorer: Scorer, scores: Scores, run: int = 1) -> None:
        """Append one evaluation and force it to the disk."""
        entry: dict[str, Any] = {"id": name, "scorer": scorer.name, "scores": scores}
        if scorer.is_loss:
            entry["is_loss"] = True
        if run > 1:
            entry["run"] = run
        with self.path.open("ab") as file:
            file.write(json_text.encode(entry) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._take(entry)

    def require_scorer(self, scorer: Scorer) -> None:
        """Raise UsageError where the scores so far come from another command or held-out set."""
        others = self.scorers.keys() - {scorer.name}
        if others:
            fault = f"{self.path}: holds scores of another {_kind(self.is_loss)}: {min(others)}"
            raise UsageError(fault, "give that one, or remove the file to begin again")

    def of_metric(self, metric: str | None) -> dict[str, list[float]]:
        """Each model's scores in one metric, one for each time that it was scored."""
        return {name: [score for run in runs for score in run] for name, runs in self._of_runs(metric).items()}

    def of_runs(self, metric: str | None) -> dict[str, list[float]]:
        """Each mixture's scores in one metric, one for each run that trained it: the mean of its evaluations."""
        return {name: [fmean(run) for run in runs] for name, runs in self._of_runs(metric).items()}

    def metric_name(self, metric: str | None) -> str:
        """What the metric that counts is called."""
        wanted = self.metric if metric is None and self.is_loss else metric
        names = {metric_name(scores, wanted) for runs in self.runs.values() for run in runs.values() for scores in run}
        return names.pop() if len(names) == 1 else wanted or self.metric

    def _of_runs(self, metric: str | None) -> dict[str, list[list[float]]]:
        wanted = self.metric if metric is None and self.is_loss else metric
        return {
            name: [[metric_of(scores, wanted) for scores in runs[run]] for run in sorted(runs)]
            for name, runs in self.runs.items()
        }

    def _take(self, entry: dict[str, Any]) -> None:
        """Raises ValueError, TypeError, KeyError or AttributeError for what is no evaluation."""
        scores = {str(metric): float(score) for metric, score in entry["scores"].items()}
        runs = self.runs.setdefault(str(entry["id"]), {})
        runs.setdefault(int(entry.get("run", 1)), []).append(scores)
        self.scorers[str(entry.get("scorer", ""))] = entry.get("is_loss") is True


def open_journal(path: Path) -> ScoreJournal:
    """Read what there is. A last line without an end was cut off while it was written: it is removed."""
    journal = ScoreJournal(path)
    if not path.exists():
        return journal
    os.truncate(path, whole_lines(path))
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            journal._take(json_text.decode(line))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ToolkitError(
                f"{path}:{number}: no line of scores", "each is {id, scores: {metric: number}}"
            ) from error
    return journal


def require_comparable(merged: ScoreJournal, trained: ScoreJournal) -> None:
    """Raise UsageError where one side holds losses and the other does not hold losses on the same data."""
    either_is_loss = merged.is_loss or trained.is_loss
    if merged.runs and trained.runs and either_is_loss and merged.scorers != trained.scorers:
        raise UsageError(
            f"{merged.path} and {trained.path} hold scores that cannot be compared: "
            f"{min(merged.scorers)} and {min(trained.scorers)}",
            "score both by the same held-out set",
        )


def _kind(is_loss: bool) -> str:
    return "held-out set" if is_loss else "command"
