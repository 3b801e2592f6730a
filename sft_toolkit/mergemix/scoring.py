"""Scoring merged and trained models, one after the other, from where the last run stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.mergemix.merge import MergeFolder
from sft_toolkit.mergemix.score_command import Scorer, Scores
from sft_toolkit.mergemix.score_journal import ScoreJournal
from sft_toolkit.training.training_folder import MODEL, PINS

Models = Iterator[tuple[str, AbstractContextManager[Path]]]
"""Each model's id, and its folder for as long as it is needed."""


def merged_models(merges: MergeFolder, threads: int) -> Models:
    """Every mixture's merge, made for the time of its evaluation where it was deferred."""
    for mixture in merges.mixtures:
        yield mixture.id, merges.model(mixture, threads)


def trained_models(merges: MergeFolder, folder: Path) -> Models:
    """The models or training runs at `folder`/<id>, for those mixtures that were trained.

    Raises ToolkitError where there are none; the context of a run that has not ended does.
    """
    trained = [mixture.id for mixture in merges.mixtures if (folder / mixture.id).is_dir()]
    if not trained:
        raise ToolkitError(f"{folder}: no model is named as a mixture", f"for example {merges.mixtures[0].id}")
    for name in trained:
        yield name, _trained_model(folder / name)


@contextmanager
def _trained_model(folder: Path) -> Iterator[Path]:
    model = folder / MODEL
    if model.is_dir():
        yield model
    elif (folder / PINS).exists():
        raise ToolkitError(f"{folder}: a run that has not ended", "finish it: `train(resume=True)`")
    else:
        yield folder


def score_models(
    models: Models,
    scorer: Scorer,
    journal: ScoreJournal,
    repeats: int,
    show: Callable[[str, Scores], None] = lambda name, scores: None,
    show_fault: Callable[[str, ToolkitError], None] = lambda name, fault: None,
) -> int:
    """Score each model until the journal holds `repeats` evaluations of it. Returns how many ran.

    Several evaluations measure the noise of a score. A model that cannot be scored does not keep the others from it; at
    the end ToolkitError names all such. Raises UsageError at once for what is no fault of one model.
    """
    journal.require_scorer(scorer)
    ran, failed = 0, []
    for name, context in models:
        missing = repeats - len(journal.scores.get(name, ()))
        if missing <= 0:
            continue
        try:
            with context as folder:
                for _ in range(missing):
                    scores = scorer.run(folder)
                    journal.add(name, scorer, scores)
                    show(name, scores)
                    ran += 1
        except UsageError:
            raise
        except ToolkitError as fault:
            failed.append(name)
            show_fault(name, fault)
    if failed:
        raise ToolkitError(
            f"not scored: {', '.join(failed)}",
            f"the same command tries {'only these' if len(failed) > 1 else 'only this one'} again",
        )
    return ran
