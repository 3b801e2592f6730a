"""What is refused of every command's outputs before it runs: a stream where it writes none, and its own inputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

_WRITTEN = ("output", "html", "batch_file")


def check_written_paths(context: typer.Context) -> None:
    """Raise BadParameter where an output that is a path is `-`, or is what another option reads.

    INPUT is looked at where it is resolved.
    """
    parameters: dict[Any, Any] = {parameter.name: parameter for parameter in context.command.params}
    for name in _WRITTEN:
        target = context.params.get(name)
        if isinstance(target, Path) and str(target) == "-":
            raise typer.BadParameter("-: this is written as a file or a folder, not to stdout", param=parameters[name])
        if target is None or not Path(target).exists():
            continue
        for other, path in _paths(context.params):
            if other not in _WRITTEN and path.exists() and path.samefile(target):
                from sft_toolkit.cli.flags import flag_of

                fault = f"{target}: is read by {flag_of(parameters[other])}; name another place"
                raise typer.BadParameter(fault, param=parameters[name])


def _paths(values: dict[str, Any]) -> Iterator[tuple[str, Path]]:
    for name, value in values.items():
        for path in value if isinstance(value, list | tuple) else (value,):
            if isinstance(path, Path):
                yield name, path
