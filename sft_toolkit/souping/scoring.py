"""Scoring merged and trained models with a user's command, one after the other, from where the last run stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from sft_toolkit.errors import ToolkitError
from sft_toolkit.souping.merge import MergeFolder
from sft_toolkit.souping.score_command import ScoreCommand, Scores
from sft_toolkit.souping.score_journal import ScoreJournal

Models = Iterator[tuple[str, AbstractContextManager[Path]]]
"""Each model's id, and its folder for as long as it is needed."""


def merged_models(merges: MergeFolder, threads: int) -> Models:
    """Every mixture's merge, made for the time of its evaluation where it was deferred."""
    for mixture in merges.mixtures:
        yield mixture.id, merges.model(mixture, threads)


def trained_models(merges: MergeFolder, folder: Path) -> Models:
    """The models at `folder`/<id>, for those mixtures that were trained. Raises ToolkitError where there are none."""
    trained = [mixture.id for mixture in merges.mixtures if (folder / mixture.id).is_dir()]
    if not trained:
        raise ToolkitError(f"{folder}: no model is named as a mixture", f"for example {merges.mixtures[0].id}")
    for name in trained:
        yield name, nullcontext(folder / name)


def score_models(
    models: Models,
    command: ScoreCommand,
    journal: ScoreJournal,
    repeats: int,
    tell: Callable[[str, Scores], None] = lambda name, scores: None,
) -> int:
    """Run the command on each model until the journal holds `repeats` evaluations of it. Returns how many ran.

    Several evaluations tell the noise of a score. Raises ToolkitError at the first that fails; those before are kept.
    """
    journal.require_command(command.template)
    ran = 0
    for name, context in models:
        missing = repeats - len(journal.scores.get(name, ()))
        if missing <= 0:
            continue
        with context as folder:
            for _ in range(missing):
                scores = command.run(folder)
                journal.add(name, command.template, scores)
                tell(name, scores)
                ran += 1
    return ran
