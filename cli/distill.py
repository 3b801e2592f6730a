"""`kolibri-sft distill`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit.cli.console import print_table
from sft_toolkit.cli.run_and_report import report_summary
from sft_toolkit.cli.teacher_options import TeacherChoice, teacher_command

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions


@teacher_command
def distill(
    run: RunOptions,
    teacher: TeacherChoice,
    language: Annotated[str, typer.Option(help="Language of the traces, as in de or en (ISO 639-1).")] = "de",
    samples: Annotated[int, typer.Option(help="Traces per prompt.", min=1)] = 1,
    openers: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File of openers, one per line under [domain]; default: the packaged ones."),
    ] = None,
    ab: Annotated[
        bool, typer.Option("--ab", help="Every second sample goes without opener; both language rates are reported.")
    ] = False,
    system: Annotated[
        str | None, typer.Option(help="What the system prompt asks of the teacher; not kept in the trace.")
    ] = None,
    min_words: Annotated[int, typer.Option(help="Shorter reasoning is too_short.", min=0)] = 5,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="CLASS", help="Class of traces to keep; default: ok only. Repeatable."),
    ] = None,
) -> None:
    """Collect reasoning traces from a teacher, opened in its language."""
    from sft_toolkit.stages.distill import DistillStage, instruction_for
    from sft_toolkit.stages.language_report import RATES_HEADER, language_rates, rates_rows
    from sft_toolkit.teachers.ask_then_judge import run_with_teacher
    from sft_toolkit.teachers.openers import packaged_openers, read_openers

    stage = DistillStage(
        asking=teacher.asking,
        journal=teacher.journal,
        openers=read_openers(openers) if openers else packaged_openers(language),
        instruction=instruction_for(language) if system is None else system,
        language=language,
        samples=samples,
        compare=ab,
        min_words=min_words,
        keep=tuple(keep or ("ok",)),
    )
    summary = run_with_teacher(stage, run, teacher.options)
    rates = language_rates(summary.counters)
    summary.facts.update(rates)
    report_summary(summary, run)
    if run.summary_format == "text" and summary.counters.splits:
        for name, groups in rates.items():
            split = name.removeprefix("language").replace("_", " ")
            print_table(f"traces that stay in {language}{split}", RATES_HEADER, rates_rows(groups))
