"""`kolibri-sft language`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit.choices import Policy
from sft_toolkit.cli.console import print_table
from sft_toolkit.cli.options import LoopPolicy, stage_command
from sft_toolkit.cli.run_and_report import report_summary

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions


@stage_command
def language(
    run: RunOptions,
    language: Annotated[str, typer.Option(help="Language that reasoning is to stay in (ISO 639-1).")] = "de",
    drop: Annotated[bool, typer.Option("--drop", help="Reject records whose reasoning drifts.")] = False,
    loops: LoopPolicy = None,
    artefacts: Annotated[
        Policy, typer.Option(help="Marks of machine translation. note: on the message; reject: the record.")
    ] = "note",
) -> None:
    """Judge whether reasoning stays in its language."""
    from sft_toolkit.running.runner import run_stage
    from sft_toolkit.stages.language import LanguageStage
    from sft_toolkit.stages.language_report import RATES_HEADER, language_rates, rates_rows

    summary = run_stage(LanguageStage(language, drop, loops, artefacts), run)
    rates = language_rates(summary.counters)["language"]
    summary.facts["language"] = rates
    report_summary(summary, run)
    if run.summary_format == "text" and summary.counters.splits:
        print_table(f"reasoning that stays in {language}", RATES_HEADER, rates_rows(rates))
