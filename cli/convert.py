"""`kolibri-sft convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit.cli.options import stage_command
from sft_toolkit.cli.run_and_report import execute

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions


@stage_command
def convert(
    run: RunOptions,
    dataset: Annotated[str | None, typer.Option(help="Data set of records that do not name one.")] = None,
) -> None:
    """Read any known format, write the toolkit's records."""
    from sft_toolkit.stages.convert import ConvertStage

    execute(ConvertStage(dataset=dataset), run)
