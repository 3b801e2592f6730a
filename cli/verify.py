"""`kolibri-sft verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit.choices import AnswerForm, Mismatch
from sft_toolkit.cli.console import print_table
from sft_toolkit.cli.run_and_report import report_summary
from sft_toolkit.cli.teacher_options import TeacherChoice, teacher_command

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions


@teacher_command
def verify(
    run: RunOptions,
    teacher: TeacherChoice,
    votes: Annotated[int, typer.Option(help="Answers per turn; more than half must agree.", min=1)] = 1,
    answers: Annotated[
        AnswerForm, typer.Option(help="How calls are answered. tools: native; json: by a schema; text: as JSON.")
    ] = "tools",
    mismatch: Annotated[
        Mismatch,
        typer.Option(
            help="What fails. strip: the reasoning is removed, the turn stays; quarantine: the record is rejected. "
            "The Kolibri report drops it.",
        ),
    ] = "strip",
    all_turns: Annotated[
        bool, typer.Option("--all-turns", help="Check all reasoning before calls, not only what backfill wrote.")
    ] = False,
) -> None:
    """Keep backfilled reasoning from which the same call follows."""
    from sft_toolkit.stages.verify import VerifyStage
    from sft_toolkit.stages.verify_report import AGREEMENT_HEADER, agreement_rows
    from sft_toolkit.teachers.ask_then_judge import run_with_teacher

    stage = VerifyStage(teacher.plain_asking, teacher.journal, votes, answers, mismatch, all_turns)
    summary = run_with_teacher(stage, run, teacher.options)
    report_summary(summary, run)
    if run.summary_format == "text" and summary.counters.splits:
        print_table("turns whose call was derived", AGREEMENT_HEADER, agreement_rows(summary.counters))
