"""Run a stage and tell what it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sft_toolkit.cli.console import clear_progress, print_json, print_summary

if TYPE_CHECKING:
    from sft_toolkit.run_options import RunOptions, Summary
    from sft_toolkit.stages.base import Stage


def execute(stage: Stage, run: RunOptions) -> Summary:
    """Run the stage, print its summary in the form the user asked for, and return it."""
    from sft_toolkit.runner import run_stage

    summary = run_stage(stage, run)
    tell(summary, run)
    return summary


def tell(summary: Summary, run: RunOptions) -> None:
    """Print a summary as `--json`, as a table, or not at all."""
    if run.told == "json":
        print_json(summary.to_json())
    elif run.told == "text":
        clear_progress()
        print_summary(summary)
