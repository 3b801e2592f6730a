"""Scoring merged and trained models, one after the other, from where the last run stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.mergemix.merge import MergeFolder
from sft_toolkit.mergemix.score_command import Scorer, Scores, Unreadable
from sft_toolkit.mergemix.score_journal import ScoreJournal
from sft_toolkit.training.training_folder import MODEL, PINS


@dataclass(frozen=True)
class Model:
    """A mixture's model: which of its training runs made it, from 1, and its folder for as long as it is needed."""

    mixture: str
    folder: AbstractContextManager[Path]
    run: int = 1

    @property
    def name(self) -> str:
        return self.mixture if self.run == 1 else f"{self.mixture}, run {self.run}"


Models = Iterator[Model]


def merged_models(merges: MergeFolder, threads: int) -> Models:
    """Every mixture's merge, made for the time of its evaluation where it was deferred."""
    for mixture in merges.mixtures:
        yield Model(mixture.id, merges.model(mixture, threads))


def trained_models(merges: MergeFolder, folder: Path, again: Sequence[Path] = ()) -> Models:
    """The models or training runs at `folder`/<id>, for those mixtures that were trained, and in each of the folders
    `again` those of mixtures that were trained once more, with another seed.

    Raises ToolkitError where a folder has none; the context of a run that has not ended does.
    """
    for run, place in enumerate((folder, *again), start=1):
        trained = [mixture.id for mixture in merges.mixtures if (place / mixture.id).is_dir()]
        if not trained:
            raise ToolkitError(f"{place}: no model is named as a mixture", f"for example {merges.mixtures[0].id}")
        for name in trained:
            yield Model(name, _trained_model(place / name), run)


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
    the end ToolkitError names all such. What a command printed that is no score is kept beside the journal. Raises
    at once where the first reply of all is such, and UsageError for what is no fault of one model.
    """
    journal.require_scorer(scorer)
    ran, failed = 0, []
    for model in models:
        missing = repeats - journal.evaluations(model.mixture, model.run)
        if missing <= 0:
            continue
        try:
            with model.folder as folder:
                for _ in range(missing):
                    scores = scorer.run(folder)
                    journal.add(model.mixture, scorer, scores, model.run)
                    show(model.name, scores)
                    ran += 1
        except UsageError:
            raise
        except ToolkitError as fault:
            shown = _kept(fault, journal, model)
            if isinstance(fault, Unreadable) and not journal.runs:
                raise shown from fault
            failed.append(model.name)
            show_fault(model.name, shown)
    if failed:
        raise ToolkitError(
            f"not scored: {', '.join(failed)}",
            f"the same command tries {'only these' if len(failed) > 1 else 'only this one'} again",
        )
    return ran


def _kept(fault: ToolkitError, journal: ScoreJournal, model: Model) -> ToolkitError:
    """The fault; where a command printed no score, with the file that now holds what it printed."""
    if not isinstance(fault, Unreadable):
        return fault
    run = "" if model.run == 1 else f".run-{model.run}"
    path = journal.path.with_name(f"{journal.path.stem}.{model.mixture}{run}.output")
    path.write_text(fault.output, encoding="utf-8")
    return ToolkitError(f"{fault.message}; all that it printed is in {path}", fault.hint)
