"""`kolibri-sft effort fit | apply | label | probe`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit.cli.console import print_json, print_note, print_table, print_warning
from sft_toolkit.cli.effort_probe import probe
from sft_toolkit.cli.options import Force, Seed, reading_command, stage_command
from sft_toolkit.cli.run_and_report import report_summary
from sft_toolkit.errors import ToolkitError

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions, Summary
    from sft_toolkit.stage import Counters
    from sft_toolkit.stages.effort.edges import FittedEdges

app = typer.Typer(no_args_is_help=True)
app.command()(probe)

TokenizerFolder = Annotated[
    Path | None, typer.Option("--tokenizer", metavar="DIR", help="Count tokens of reasoning with this tokenizer.")
]
LengthColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Take lengths from this key of the record: one number per exchange."),
]
MinGroup = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=1,
        help="Exchanges with reasoning that a (data set, difficulty), and a data set, needs for edges of its own; "
        "smaller data sets get their median with the pooled spread.",
    ),
]


@app.command()
@reading_command
def fit(
    run: RunOptions,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="JSON file for the edges.")],
    tokenizer: TokenizerFolder = None,
    length_column: LengthColumn = None,
    min_group: MinGroup = 20,
    force: Force = False,
) -> None:
    """Fit the edges of each group (data set, difficulty) and write them to a file that apply reads."""
    from sft_toolkit.running.output_checks import check_file
    from sft_toolkit.stages.effort.fit import fit_edges
    from sft_toolkit.stages.effort.lengths import length_source

    check_file(output, run, force=force)
    edges, counters = fit_edges(length_source(tokenizer, length_column), run, min_group=min_group)
    if not edges.reasoned:
        raise ToolkitError(
            "no exchange holds reasoning: there is nothing to fit", "see kolibri-sft convert for formats"
        )
    edges.write(output)
    _report_fit(edges, counters, output, run.summary_format)


@app.command()
@stage_command
def apply(
    run: RunOptions,
    edges: Annotated[Path, typer.Option(metavar="FILE", help="Edges that effort fit wrote.")],
    tokenizer: TokenizerFolder = None,
    length_column: LengthColumn = None,
    seed: Seed = 0,
) -> None:
    """Label records by edges that effort fit has written."""
    from sft_toolkit.running.runner import run_stage
    from sft_toolkit.stages.effort.apply import EffortStage
    from sft_toolkit.stages.effort.edges import read_edges
    from sft_toolkit.stages.effort.lengths import length_source

    fitted = read_edges(edges)
    summary = run_stage(EffortStage(length_source(tokenizer, length_column), fitted, seed), run)
    _tell_labels(summary, fitted, run, "the edges do not fit these records: fit on them, or effort label them")


@app.command()
@stage_command
def label(
    run: RunOptions,
    tokenizer: TokenizerFolder = None,
    length_column: LengthColumn = None,
    min_group: MinGroup = 20,
    seed: Seed = 0,
) -> None:
    """Fit on the input and label it, in two passes; a pipe is kept in a temporary file in between.

    The edges lie beside the labelled shards, in effort_edges.json, where --resume finds them. A dry run fits on the
    first rows alone.
    """
    from sft_toolkit.stages.effort.label import OPENING_PROMPTS, fit_and_label
    from sft_toolkit.stages.effort.lengths import length_source

    summary, fitted = fit_and_label(length_source(tokenizer, length_column), run, min_group, seed)
    _tell_labels(summary, fitted, run, "many lengths are equal, or --min-group is too high")
    openings = summary.facts.get(OPENING_PROMPTS)
    if openings and run.summary_format == "text":
        share = openings["contrasted"] / max(openings["distinct"], 1)
        print_note(
            f"{openings['distinct']:,} different opening prompts, {openings['contrasted']:,} ({share:.1%}) of them "
            "with two or more lengths of reasoning, which teach a model to read its effort"
        )


def _tell_labels(summary: Summary, edges: FittedEdges, run: RunOptions, cause: str) -> None:
    """`cause`: why a group may split otherwise than 30/40/30, and what to do about it."""
    from sft_toolkit.stages.effort.report import SPLIT_HEADER, degenerate_groups, lopsided_groups, split_rows

    lopsided = lopsided_groups(summary.counters)
    summary.facts["degenerate_groups"] = degenerate_groups(edges)
    summary.facts["lopsided_groups"] = list(lopsided)
    report_summary(summary, run)
    if run.summary_format == "text" and summary.counters.splits:
        if "fitted_on_first" in summary.facts:
            print_note(f"edges fitted on the first {summary.facts['fitted_on_first']:,} records alone")
        title = "none is a share of all exchanges; low, medium and high are shares of those with reasoning"
        print_table(title, SPLIT_HEADER, split_rows(summary.counters, edges))
        for group, split in lopsided.items():
            print_warning(f"{group}: {split}, where about 30/40/30 is meant; {cause}")


def _report_fit(edges: FittedEdges, counters: Counters, output: Path, form: str) -> None:
    from sft_toolkit.stages.effort.report import EDGES_HEADER, degenerate_groups, edges_rows

    if form == "json":
        facts = {"groups": len(edges.groups), "degenerate_groups": degenerate_groups(edges)}
        print_json({"stage": "effort fit", "output": str(output), **counters.to_json(), **facts})
    elif form == "text":
        without = edges.without_reasoning / (edges.reasoned + edges.without_reasoning)
        title = f"effort fit -> {output}: {edges.reasoned:,} exchanges with reasoning; {without:.1%} of all have none"
        print_table(title, EDGES_HEADER, edges_rows(edges))
