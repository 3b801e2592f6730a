"""`kolibri-sft backfill`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit.cli.run_and_report import report_summary
from sft_toolkit.cli.teacher_options import TeacherChoice, teacher_command

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions


@teacher_command
def backfill(
    run: RunOptions,
    teacher: TeacherChoice,
    language: Annotated[str, typer.Option(help="Language of the reasoning (ISO 639-1).")] = "de",
    min_words: Annotated[int, typer.Option(help="Shorter reasoning is not taken.", min=0)] = 5,
) -> None:
    """Write the reasoning that tool calls lack."""
    from sft_toolkit.stages.backfill import BackfillStage
    from sft_toolkit.teachers.ask_then_judge import run_with_teacher

    stage = BackfillStage(teacher.plain_asking, teacher.journal, language=language, min_words=min_words)
    report_summary(run_with_teacher(stage, run, teacher.options), run)
