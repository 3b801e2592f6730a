"""`kolibri-sft mask`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit.choices import RepeatRule
from sft_toolkit.cli.options import LoopPolicy, stage_command
from sft_toolkit.cli.run_and_report import execute

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions


@stage_command
def mask(
    run: RunOptions,
    repeats: Annotated[
        RepeatRule,
        typer.Option(
            help="Which exact repeats of a failed call to mask. default: those that fail again with the same text; "
            "strict: all; user-round: as default, but a user turn clears earlier failures.",
        ),
    ] = "default",
    failure_pattern: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="A result that begins with this failed. Repeatable."),
    ] = None,
    unknown_tool_pattern: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="A result that begins with this says: no such tool. Repeatable."),
    ] = None,
    invalid_arguments_pattern: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="A result that begins with this says: bad arguments. Repeatable."),
    ] = None,
    known_tool: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="Tools of such names need no declaration: web_search.*, say. Repeatable."),
    ] = None,
    allow_extra_arguments: Annotated[
        bool, typer.Option("--allow-extra-arguments", help="Accept arguments that a schema does not declare.")
    ] = False,
    loops: LoopPolicy = None,
    shortcuts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="TOML rules on calls that fetch an answer, or `packaged`. Repeatable. Each notes, masks or rejects.",
        ),
    ] = None,
) -> None:
    """Take wrong tool calls out of the loss: unknown tools, invalid arguments, repeats of a failed call."""
    from sft_toolkit.stages.mask import MaskStage
    from sft_toolkit.stages.shortcuts import read_rules

    stage = MaskStage(
        repeats=repeats,
        failure_patterns=tuple(failure_pattern or ()),
        unknown_tool_patterns=tuple(unknown_tool_pattern or ()),
        invalid_arguments_patterns=tuple(invalid_arguments_pattern or ()),
        known_tools=tuple(known_tool or ()),
        allow_extra_arguments=allow_extra_arguments,
        loops=loops,
        shortcuts=tuple(rule for file in shortcuts or () for rule in read_rules(file)),
    )
    execute(stage, run)
