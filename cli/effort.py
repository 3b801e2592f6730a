"""`kolibri-sft effort fit | apply | label`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit.cli.console import clear_progress, print_json, print_table
from sft_toolkit.cli.execute import tell
from sft_toolkit.cli.options import Force, reading_command, stage_command
from sft_toolkit.errors import ToolkitError, UsageError

if TYPE_CHECKING:
    from sft_toolkit.run_options import RunOptions
    from sft_toolkit.stages.base import Counters
    from sft_toolkit.stages.effort_edges import FittedEdges
    from sft_toolkit.stages.effort_lengths import LengthSource

app = typer.Typer(no_args_is_help=True)

TokenizerFolder = Annotated[
    Path | None, typer.Option("--tokenizer", metavar="DIR", help="Count tokens of reasoning with this tokenizer.")
]
LengthColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Take lengths from this key of the record: one number per exchange."),
]


@app.command()
@reading_command
def fit(
    run: RunOptions,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="JSON file for the edges.")],
    tokenizer: TokenizerFolder = None,
    length_column: LengthColumn = None,
    force: Force = False,
) -> None:
    """Fit the edges of each group (data set, difficulty) and write them to a file that apply reads."""
    from sft_toolkit.stages.effort_fit import fit_edges
    from sft_toolkit.stages.effort_lengths import length_source

    _require_free(output, force)
    edges, counters = fit_edges(length_source(tokenizer, length_column), run)
    if not edges.reasoned:
        raise ToolkitError(
            "no exchange holds reasoning: there is nothing to fit", "see kolibri-sft convert for formats"
        )
    edges.write(output)
    _tell_fit(edges, counters, output, run.told)


@app.command()
@stage_command
def apply(
    run: RunOptions,
    edges: Annotated[Path, typer.Option(metavar="FILE", help="Edges that effort fit wrote.")],
    tokenizer: TokenizerFolder = None,
    length_column: LengthColumn = None,
) -> None:
    """Label records by edges that effort fit has written."""
    from sft_toolkit.stages.effort_edges import read_edges
    from sft_toolkit.stages.effort_lengths import length_source

    _label(length_source(tokenizer, length_column), read_edges(edges), run)


@app.command()
@stage_command
def label(run: RunOptions, tokenizer: TokenizerFolder = None, length_column: LengthColumn = None) -> None:
    """Fit on the input and label it, in two passes; a pipe is kept in a temporary file in between."""
    from sft_toolkit.passes import readable_twice
    from sft_toolkit.stages.effort_fit import fit_edges
    from sft_toolkit.stages.effort_lengths import length_source
    from sft_toolkit.stages.effort_store import LengthStore

    lengths, store = length_source(tokenizer, length_column), LengthStore()
    with readable_twice(run) as kept, tempfile.TemporaryDirectory(prefix="kolibri-sft-") as folder:
        edges, _ = fit_edges(lengths, kept, store)
        _label(store.save(Path(folder), lengths), edges, kept)


def _label(lengths: LengthSource, edges: FittedEdges, run: RunOptions) -> None:
    from sft_toolkit.runner import run_stage
    from sft_toolkit.stages.effort import EffortStage
    from sft_toolkit.stages.effort_report import SPLIT_HEADER, degenerate_groups, split_rows

    summary = run_stage(EffortStage(lengths, edges, run.seed), run)
    summary.facts["degenerate_groups"] = degenerate_groups(edges)
    tell(summary, run)
    if run.told == "text" and summary.counters.splits:
        title = "none is a share of all exchanges; low, medium and high are shares of those with reasoning"
        print_table(title, SPLIT_HEADER, split_rows(summary.counters, edges))


def _require_free(output: Path, force: bool) -> None:
    from sft_toolkit.shards.output import require_output_parent

    require_output_parent(output)
    if output.exists() and not force:
        raise UsageError(f"{output}: exists", "use --force to replace it")


def _tell_fit(edges: FittedEdges, counters: Counters, output: Path, form: str) -> None:
    from sft_toolkit.stages.effort_report import EDGES_HEADER, degenerate_groups, edges_rows

    if form == "json":
        facts = {"groups": len(edges.groups), "degenerate_groups": degenerate_groups(edges)}
        print_json({"stage": "effort fit", "output": str(output), **counters.to_json(), **facts})
    elif form == "text":
        clear_progress()
        without = edges.without_reasoning / (edges.reasoned + edges.without_reasoning)
        title = f"effort fit -> {output}: {edges.reasoned:,} exchanges with reasoning; {without:.1%} of all have none"
        print_table(title, EDGES_HEADER, edges_rows(edges))
