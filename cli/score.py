"""`kolibri-sft score`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit.cli.options import stage_command
from sft_toolkit.cli.run_and_report import report_summary

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions


@stage_command
def score(
    run: RunOptions,
    answer_key: Annotated[
        str, typer.Option(metavar="FIELD", help="Key or path of the record that holds the reference.")
    ],
    verifier: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="number, text, choice, json, calls, math, or command:'CMD': a program that gets an attempt as JSON on "
            "stdin and prints its verdict. It runs unconfined.",
        ),
    ],
    language: Annotated[
        str, typer.Option(metavar="CODE", help="Of records that name none: de, de-CH, fr, en, …")
    ] = "de",
    options: Annotated[
        str, typer.Option(metavar="FIELD", help="Of choice: a list, or an object by letter.")
    ] = "options",
    prompt_id: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="What attempts at one prompt share; prompt_id, else their messages."),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(metavar="REL", min=0.0, help="Of number and math: how far off, as a share of the reference."),
    ] = 0.0,
    seconds: Annotated[float, typer.Option(min=0.0, help="Of a command: time for one attempt.")] = 10.0,
    megabytes: Annotated[int, typer.Option(min=1, help="Of a command: memory for one attempt.")] = 2048,
) -> None:
    """Say which attempts at a prompt are right, and how often it is solved.

    Writes the key score: the verdict (right, wrong, no_answer, undecided), what was extracted, and of the prompt its
    attempts, pass_rate, majority, and reference_doubtful where most agree with one another and not with the reference.
    """
    from sft_toolkit.stages.choosing.score import ScoreOptions, run_score

    how = ScoreOptions(answer_key, verifier, language, options, prompt_id, tolerance, seconds, megabytes)
    report_summary(run_score(how, run), run)
