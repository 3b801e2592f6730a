"""`kolibri-sft decontaminate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit.choices import Contaminated
from sft_toolkit.cli.console import print_table
from sft_toolkit.cli.options import stage_command
from sft_toolkit.cli.run_and_report import report_summary

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions


@stage_command
def decontaminate(
    run: RunOptions,
    against: Annotated[
        list[str], typer.Option(metavar="FILE", help="The benchmark: JSONL, Parquet or a glob. Repeatable.")
    ],
    field: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="Key or path of an item to search for, each for itself. Repeatable."),
    ],
    id_field: Annotated[str, typer.Option(metavar="NAME", help="Key that names an item; else FILE:LINE.")] = "id",
    reject: Annotated[
        Contaminated,
        typer.Option(
            help="record: the record; exchange: from the exchange that hits on; prompt: all records with that prompt; "
            "none: only note hits."
        ),
    ] = "record",
    min_score: Annotated[
        float, typer.Option(help="How alike a text must be: 1 less half the share of changed words.")
    ] = 0.85,
    roles: Annotated[
        list[str] | None, typer.Option(metavar="ROLE", help="Whose messages are searched. Repeatable; user, assistant.")
    ] = None,
    planted: Annotated[
        int, typer.Option(metavar="N", min=0, help="Plant N items in copies of the records and report what is found.")
    ] = 0,
) -> None:
    """Reject what overlaps with a benchmark, and report what such a filter misses.

    Each hit is noted under contamination: item, field, message, characters, score. An item that hits over 1% of the
    records stops the run, unless --force.
    """
    from sft_toolkit.stages.choosing.decontaminate import SEARCHED, DecontaminateOptions, run_decontaminate

    how = DecontaminateOptions(
        tuple(against), tuple(field), id_field, reject, min_score, tuple(roles or SEARCHED), planted, run.force
    )
    summary = run_decontaminate(how, run)
    report_summary(summary, run)
    if run.summary_format == "text" and planted:
        found = summary.facts["planted"]
        rows = [
            (kind, *(found[kind][name] for name in ("n", "found", "recall", "low", "high")))
            for kind in found
            if kind != "shuffled"
        ]
        print_table("planted items", ("kind", "n", "found", "recall", "low", "high"), rows)
        print_table("shuffled benchmark", ("items", "turns", "hits"), [tuple(found["shuffled"].values())])
