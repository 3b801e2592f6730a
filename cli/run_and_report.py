"""Run a stage and tell what it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sft_toolkit.cli.console import clear_progress, print_json, print_summary

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions, Summary
    from sft_toolkit.stage import Stage


def execute(stage: Stage, run: RunOptions) -> Summary:
    """Run the stage, print its summary in the form the user asked for, and return it."""
    from sft_toolkit.running.runner import run_stage

    summary = run_stage(stage, run)
    tell(summary, run)
    return summary


def tell(summary: Summary, run: RunOptions) -> None:
    """Print a summary as `--json`, as a table, or not at all."""
    if run.reported == "json":
        print_json(summary.to_json())
    elif run.reported == "text":
        clear_progress()
        print_summary(summary)
