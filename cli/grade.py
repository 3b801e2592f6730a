"""`kolibri-sft grade collect | fit | apply`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit.choices import ClassifierKind
from sft_toolkit.cli.console import print_json, print_table, print_warning
from sft_toolkit.cli.options import Force, Seed, reading_command, stage_command
from sft_toolkit.cli.run_and_report import execute, report_summary
from sft_toolkit.cli.teacher_options import TeacherChoice, optional_teacher_command
from sft_toolkit.errors import ToolkitError, UsageError

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions, Summary
    from sft_toolkit.stage import Counters
    from sft_toolkit.stages.grade.fit import Report

app = typer.Typer(no_args_is_help=True)

Levels = Annotated[str, typer.Option(metavar="A,B,…", help="Names of the levels, easiest first.")]
_LEVELS = "easy,medium,hard"


@app.command()
@optional_teacher_command
def collect(
    run: RunOptions,
    teacher: TeacherChoice | None,
    label_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Take labels from this key of the record, a level or a list of votes."),
    ] = None,
    levels: Levels = _LEVELS,
    votes: Annotated[int, typer.Option(help="Votes per prompt; the median counts.", min=1)] = 1,
    rubric: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Instructions to the teacher: how to grade.")
    ] = None,
) -> None:
    """Collect labels to learn from: from a teacher that is asked by a rubric, or from a column."""
    from sft_toolkit.stages.grade.labels import parse_levels

    names = parse_levels(levels)
    if (teacher is None) == (label_column is None):
        raise UsageError("labels need exactly one source", "give either --teacher or --label-column NAME")
    if teacher is not None:
        summary = _asked(run, teacher, names, votes, rubric)
    else:
        from sft_toolkit.stages.grade.collect import ColumnLabels
        from sft_toolkit.stages.grade.labels import LabelColumn

        summary = execute(ColumnLabels(LabelColumn(str(label_column), names)), run)
    _report_levels(summary, run, names)


@app.command()
@reading_command
def fit(
    run: RunOptions,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder for the distilled classifier.")],
    student: Annotated[
        ClassifierKind,
        typer.Option(
            help="linear: n-grams and surface features. ordinal: the same, levels in order. fasttext: words and pairs."
        ),
    ] = "linear",
    label_column: Annotated[str, typer.Option(metavar="NAME", help="Key of the record that holds the label.")] = (
        "difficulty"
    ),
    levels: Levels = _LEVELS,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Fit a distilled classifier on labels, and report its agreement on unseen prompts and unseen data sets."""
    from sft_toolkit.shards.whole_folder import require_free
    from sft_toolkit.stages.grade.fit import fit_grader
    from sft_toolkit.stages.grade.labels import LabelColumn, parse_levels
    from sft_toolkit.stages.grade.model import DESCRIPTION

    require_free(output, DESCRIPTION, force=force)
    column = LabelColumn(label_column, parse_levels(levels))
    grader, report, counters = fit_grader(student, column, seed, run)
    grader.write(output, force=force)
    _report_fit(report, counters, output, run.summary_format)


@app.command()
@stage_command
def apply(
    run: RunOptions,
    model: Annotated[Path, typer.Option(metavar="DIR", help="Distilled classifier that grade fit wrote.")],
    keep: Annotated[bool, typer.Option("--keep", help="Leave records that have a difficulty as they are.")] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Apply a classifier that does not beat the commonest level.")
    ] = False,
) -> None:
    """Label records by a distilled classifier of grade fit: difficulty and difficulty_confidence."""
    from sft_toolkit.stages.grade.apply import GradeStage

    stage = GradeStage(str(model), keep, anyway)
    _report_levels(execute(stage, run), run, tuple(stage.facts()["levels"]))


def _asked(
    run: RunOptions, teacher: TeacherChoice, levels: tuple[str, ...], votes: int, rubric: Path | None
) -> Summary:
    from sft_toolkit.stages.grade.collect import TeacherLabels
    from sft_toolkit.stages.grade.rubric import default_examples, default_rubric
    from sft_toolkit.teachers.ask_then_judge import run_with_teacher

    stage = TeacherLabels(
        asking=teacher.plain_asking,
        journal=teacher.journal,
        rubric=_rubric(rubric) if rubric else default_rubric(levels),
        examples=() if rubric else default_examples(levels),
        levels=levels,
        votes=votes,
    )
    summary = run_with_teacher(stage, run, teacher.options)
    report_summary(summary, run)
    return summary


def _rubric(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise ToolkitError(f"{path}: cannot be read", "--rubric takes a text file") from fault


def _report_levels(summary: Summary, run: RunOptions, levels: tuple[str, ...]) -> None:
    """How the labels split, per data set."""
    splits = summary.counters.splits
    if run.summary_format != "text" or not splits:
        return
    rows = [
        (name, split.total(), *(split[level] / split.total() for level in levels))
        for name, split in sorted(splits.items())
    ]
    print_table("labels, as shares", ("data set", "records", *levels), rows)


def _report_fit(report: Report, counters: Counters, output: Path, form: str) -> None:
    if form == "json":
        print_json({"stage": "grade fit", "output": str(output), **counters.to_json(), **report.to_json()})
    elif form == "text":
        _print_report(report, f"grade fit -> {output}: {counters.records_out:,} labels")


def _print_report(report: Report, title: str) -> None:
    names = ("random split", f"{report.datasets} data sets, left out")
    known = dict(zip(names, report.splits.values(), strict=False))
    rows = [
        (name, found.prompts, found.exact, found.within_one, found.kappa, found.majority, sure.confidence, sure.error)
        for (name, found), sure in zip(known.items(), report.calibrations, strict=True)
    ]
    header = ("agreement on", "prompts", "exact", "within one", "weighted kappa", "majority baseline", "confidence")
    print_table(title, (*header, "calibration error"), rows)
    for name, found in known.items():
        confusion = [(level, *row) for level, row in zip(report.levels, found.confusion.tolist(), strict=True)]
        print_table(f"{name}: rows are labels, columns the classifier's", ("", *report.levels), confusion)
    if report.useless:
        found = report.unseen or report.seen
        print_warning(
            f"the classifier agrees with the teacher on {found.exact:.3f}, the commonest level alone on "
            f"{found.majority:.3f}: grade apply refuses it without --anyway"
        )
    if report.unseen is None:
        print_warning("all labels are of one data set: agreement on another one is unknown")
    elif report.collapses:
        print_warning(
            f"on data sets that it has not seen the classifier agrees little (kappa {report.unseen.kappa:.2f}, "
            f"{report.seen.kappa:.2f} on those that it has): collect labels of every data set that it is to label"
        )
