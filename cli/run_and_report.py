"""Run a stage and report what it did."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sft_toolkit.cli.console import print_json, print_summary

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions, Summary
    from sft_toolkit.stage import Stage


def execute(stage: Stage, run: RunOptions) -> Summary:
    """Run the stage, print its summary in the form the user asked for, and return it."""
    from sft_toolkit.running.runner import run_stage

    summary = run_stage(stage, run)
    report_summary(summary, run)
    return summary


def report_summary(summary: Summary, run: RunOptions) -> None:
    """Print a summary as `--json`, as a table, or not at all."""
    if run.summary_format == "json":
        carries_data = run.output == "-" and not run.dry_run
        print_json(summary.to_json(), sys.stderr if carries_data else sys.stdout)
    elif run.summary_format == "text":
        print_summary(summary)
