"""`kolibri-sft select`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit.choices import Preference
from sft_toolkit.cli.options import Seed, stage_command
from sft_toolkit.cli.run_and_report import report_summary

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions


@stage_command
def select(
    run: RunOptions,
    pass_rate: Annotated[
        str | None, typer.Option(metavar="LOW..HIGH", help="Right attempts of a prompt, of --of; without it, rates.")
    ] = None,
    of: Annotated[int, typer.Option(min=1, help="Attempts that a prompt needs, and what --pass-rate counts.")] = 1,
    per_prompt: Annotated[
        int | None, typer.Option(min=1, help="Right attempts to keep of a prompt; all unless set.")
    ] = None,
    prefer: Annotated[
        Preference, typer.Option(help="Which of them. format: calls, loops and endings, as docs/choosing.md says.")
    ] = "shortest",
    merge_rates: Annotated[
        list[str] | None, typer.Option(metavar="OTHER", help="Scored records whose attempts count in the rates too.")
    ] = None,
    prompt_id: Annotated[
        str | None, typer.Option(metavar="FIELD", help="What attempts at one prompt share, as score was given it.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Keep right attempts at prompts of a range of pass rates, a few of each.

    Adds sampling_weight, 1 - pass rate, by which mix can favour prompts that are seldom solved.
    """
    from sft_toolkit.stages.choosing.select import SelectOptions, parse_window, run_select

    low, high = parse_window(pass_rate)
    how = SelectOptions(low, high, of, per_prompt, prefer, tuple(merge_rates or ()), prompt_id, seed)
    report_summary(run_select(how, run), run)
