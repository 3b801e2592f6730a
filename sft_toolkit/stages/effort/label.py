"""`effort label`: fit, then label, in two passes over the same records."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sft_toolkit.labelers.effort import MIN_GROUP
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.passes import DRY_RUN_ROWS, readable_twice
from sft_toolkit.running.runner import require_output, run_stage
from sft_toolkit.shards.output import EFFORT_EDGES, OutputFolder
from sft_toolkit.stages.effort.apply import EffortStage
from sft_toolkit.stages.effort.edges import FittedEdges, read_edges
from sft_toolkit.stages.effort.fit import fit_edges
from sft_toolkit.stages.effort.lengths import LengthSource
from sft_toolkit.stages.effort.opening_prompts import OpeningLengths
from sft_toolkit.stages.effort.store import LengthStore

OPENING_PROMPTS = "opening_prompts"


def fit_and_label(
    lengths: LengthSource, run: RunOptions, min_group: int = MIN_GROUP, seed: int = 0
) -> tuple[Summary, FittedEdges]:
    """Fit on the inputs of the run and label them, or resume labelling where an earlier run has fitted.

    A dry run fits and labels the first rows; the summary's fact `fitted_on_first` says how many. That of a run which
    fitted holds its `opening_prompts`. Raises as `runner.run_stage` does.
    """
    if run.dry_run:
        return _preview(lengths, run, min_group, seed)
    require_output(run, known=run.goes_on)
    edges = _kept_edges(lengths, run, min_group)
    if edges is not None:
        return run_stage(EffortStage(lengths, edges, seed), run), edges
    with readable_twice(run) as kept, tempfile.TemporaryDirectory(prefix="kolibri-sft-") as folder:
        store, openings = LengthStore(), OpeningLengths()
        edges, _ = fit_edges(lengths, kept, store, min_group, openings)
        summary = run_stage(EffortStage(store.save(Path(folder), lengths), edges, seed), kept)
        summary.facts[OPENING_PROMPTS] = openings.summed()._asdict()
        return summary, edges


def _preview(lengths: LengthSource, run: RunOptions, min_group: int, seed: int) -> tuple[Summary, FittedEdges]:
    with readable_twice(run, DRY_RUN_ROWS) as kept:
        edges, counters = fit_edges(lengths, kept, min_group=min_group)
        summary = run_stage(EffortStage(lengths, edges, seed), kept)
    summary.facts["fitted_on_first"] = counters.records_in
    return summary, edges


def _kept_edges(lengths: LengthSource, run: RunOptions, min_group: int) -> FittedEdges | None:
    """The edges in the folder that the run resumes; that inputs and options are those of then, it checks itself.

    They are there once the folder is pinned to them. Raises UsageError for lengths from elsewhere, or another
    `min_group`.
    """
    path = Path(run.output) / EFFORT_EDGES
    if run.force or not (run.to_folder and run.goes_on and path.is_file()):
        return None
    edges = read_edges(path)
    if edges.table.min_group != min_group:
        was = f"`min_group` was {edges.table.min_group}, is {min_group} now"
        raise OutputFolder(Path(run.output)).begun_otherwise(was)
    if edges.lengths != lengths.identity:
        raise OutputFolder(Path(run.output)).begun_otherwise("what lengths are measured with changed")
    return edges
