"""Scores as they come in: a JSONL file that grows line by line, so that an interrupted evaluation goes on."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from sft_toolkit import json_text
from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.souping.score_command import Scores, metric_of

MERGED, TRAINED = "scores.jsonl", "trained.jsonl"


@dataclass
class ScoreJournal:
    """Lines {"id", "command", "scores": {metric: number}}; a model scored several times has several lines."""

    path: Path
    scores: dict[str, list[Scores]] = field(default_factory=dict)
    commands: set[str] = field(default_factory=set)

    def add(self, name: str, command: str, scores: Scores) -> None:
        """Append one evaluation and force it to the disk."""
        line = json_text.encode({"id": name, "command": command, "scores": scores})
        with self.path.open("ab") as file:
            file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._take(name, command, scores)

    def require_command(self, command: str) -> None:
        """Raise UsageError where the scores so far come from another command."""
        others = self.commands - {command}
        if others:
            fault = f"{self.path}: holds scores of another command: {min(others)}"
            raise UsageError(fault, "give that one, or remove the file to begin again")

    def of_metric(self, metric: str | None) -> dict[str, list[float]]:
        """Each model's scores in one metric, one for each time that it was scored."""
        return {name: [metric_of(scores, metric) for scores in runs] for name, runs in self.scores.items()}

    def _take(self, name: str, command: str, scores: Scores) -> None:
        self.scores.setdefault(name, []).append(scores)
        self.commands.add(command)


def open_journal(path: Path) -> ScoreJournal:
    """Read what there is. A last line without an end was cut off while it was written: it is removed."""
    journal = ScoreJournal(path)
    if not path.exists():
        return journal
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            entry = json_text.decode(line)
            scores = {str(metric): float(score) for metric, score in entry["scores"].items()}
            journal._take(str(entry["id"]), str(entry.get("command", "")), scores)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ToolkitError(
                f"{path}:{number}: no line of scores", "each is {id, scores: {metric: number}}"
            ) from error
    return journal
