"""`kolibri-sft dedup`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit.choices import DuplicateField, NumbersRule
from sft_toolkit.cli.options import stage_command
from sft_toolkit.cli.run_and_report import report_summary

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions


@stage_command
def dedup(
    run: RunOptions,
    by: Annotated[
        DuplicateField, typer.Option(help="What is compared: all user turns, the last answer, or each with its like.")
    ],
    threshold: Annotated[
        float, typer.Option(help="Jaccard index of character 5-shingles from which two texts are duplicates.")
    ] = 0.8,
    keep: Annotated[
        str,
        typer.Option(metavar="RULE", help="first in the input, longest answer, or best:FIELD, its highest value."),
    ] = "first",
    keep_contrast: Annotated[
        bool, typer.Option("--keep-contrast", help="Of one prompt, keep the shortest and the longest reasoning.")
    ] = False,
    contrast: Annotated[
        float, typer.Option(min=1.0, help="How many times longer the longest reasoning must be for that.")
    ] = 2.0,
    numbers: Annotated[NumbersRule, typer.Option(help="keep: texts of different numbers are no duplicates.")] = "keep",
) -> None:
    """Keep one record of each cluster of equal and nearly equal ones.

    Writes cluster and cluster_size; a rejected record names the one that was kept. A cluster of more than 5% of the
    records stops the run, unless --force.
    """
    from sft_toolkit.stages.choosing.dedup import DedupOptions, run_dedup

    how = DedupOptions(by, threshold, keep, contrast if keep_contrast else None, numbers, run.force)
    report_summary(run_dedup(how, run), run)
