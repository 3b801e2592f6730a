"""What the commands that make models have in common: options, progress, and the trainer's dependencies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit import choices
from sft_toolkit.cli.console import on_terminal
from sft_toolkit.errors import UsageError

if TYPE_CHECKING:
    from sft_toolkit.souping.writing import OutputOptions

Dtype = Annotated[
    choices.Dtype | None,
    typer.Option(case_sensitive=False, help="By default each tensor keeps its own."),
]
MaxShardSize = Annotated[str, typer.Option(help="Largest file, as in 5GB or 500MB.")]
Threads = Annotated[int, typer.Option(help="Threads; 0: one per processor, at most 16.", min=0)]
ScoreTimeout = Annotated[float | None, typer.Option(help="Seconds that one run of the score command may take.")]
Metric = Annotated[
    str | None,
    typer.Option(
        help="The score that counts, where there are several; by its path where objects are nested: gsm8k/acc,none."
    ),
]
LowerIsBetter = Annotated[bool, typer.Option("--lower-is-better", help="The score is a loss.")]


def output_options(dtype: choices.Dtype | None, max_shard_size: str, threads: int, force: bool) -> OutputOptions:
    """Raises UsageError for a size that does not exist."""
    from sft_toolkit.souping.writing import OutputOptions, parse_size

    return OutputOptions(dtype, parse_size(max_shard_size), force, threads)


def require_torch() -> None:
    """Raise UsageError where the trainer's dependencies are not installed."""
    from importlib.util import find_spec

    for name in ("torch", "transformers", "accelerate"):
        if find_spec(name) is None:
            raise UsageError(f"{name} is not installed", "in the checkout: pip install '.[train]'")


def evaluator(command: str, timeout: float | None, metric: str | None) -> Callable[[Path], float]:
    """What runs the score command on a model and returns its score."""
    from sft_toolkit.mergemix.score_command import ScoreCommand, metric_of

    score_command = ScoreCommand(command, timeout, metric)
    return lambda model: metric_of(score_command.run(model), metric)


@contextmanager
def elements_shown(name: str, quiet: bool) -> Iterator[Callable[[int], None]]:
    """What hears of written elements: on a terminal it shows how many."""
    if quiet or not on_terminal():
        yield lambda elements: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description} {task.completed:,} parameters"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(name, total=None)
        yield lambda elements: display.advance(task, elements)
