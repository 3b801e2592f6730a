"""`kolibri-sft status`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sft_toolkit.cli.console import print_note, print_table
from sft_toolkit.cli.guard import guarded
from sft_toolkit.cli.options import Debug
from sft_toolkit.errors import TryAgain

if TYPE_CHECKING:
    from sft_toolkit.running.folder_status import FolderStatus


@guarded
def status(
    outputs: Annotated[list[Path], typer.Argument(metavar="OUT...", help="Shard folders that commands write.")],
    json: Annotated[bool, typer.Option("--json", help="One JSON object per folder on stdout.")] = False,
    debug: Debug = False,
) -> None:
    """Say of shard folders which blocks are done or missing, who works on them, and what to submit again.

    Exit code 0: all are whole; 75: some are unfinished.
    """
    import sys

    from sft_toolkit.json_text import encode_text
    from sft_toolkit.running.folder_status import folder_status

    found = [folder_status(output) for output in outputs]
    for folder in found:
        if json:
            print(encode_text(folder.to_json()))
        else:
            print_note(_line(folder), sys.stdout)
            if rows := _rows(folder):
                print_table("who has worked on it", ("task", "state", "host", "process", "error"), rows, sys.stdout)
    unfinished = [folder for folder in found if not folder.whole]
    if unfinished:
        sys.stdout.flush()
        raise TryAgain(f"{len(unfinished):,} of {len(found):,} folders are unfinished", _advice(unfinished))


def _line(folder: FolderStatus) -> str:
    from sft_toolkit.running.folder_status import ranges

    if folder.whole:
        return f"{folder.path}: whole, {len(folder.done):,} shards"
    if not folder.begun:
        return f"{folder.path}: not begun"
    count = "an unknown number" if folder.blocks is None else f"{folder.blocks:,}"
    missing = f", missing: {ranges(folder.missing)}" if folder.missing else ""
    return f"{folder.path}: unfinished, {len(folder.done):,} of {count} of blocks done{missing}"


def _rows(folder: FolderStatus) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = [
        (task.name, task.state, task.host, str(task.pid), task.error) for task in folder.tasks
    ]
    known = {task.task for task in folder.tasks}
    return rows + [(f"task-{number}", "not begun", "", "", "") for number in folder.again if number not in known]


def _advice(unfinished: list[FolderStatus]) -> str:
    """What to submit again, for the first folder that needs it."""
    from sft_toolkit.running.folder_status import ranges

    for folder in unfinished:
        if again := ranges(folder.again):
            return f"{folder.path}: submit again with sbatch --array={again}"
        parts = [task.name for task in folder.tasks if task.state != "running" and task.name.startswith("part-")]
        if parts and not folder.again:
            _, index, _, count = parts[0].split("-")
            return f"{folder.path}: run again what is missing, as --shard {index}/{count}"
    running = any(task.state == "running" for folder in unfinished for task in folder.tasks)
    return "tasks are still running" if running else "the same command with --resume continues"
