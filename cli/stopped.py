"""What to do after a command was stopped: said once, when Ctrl-C or SIGTERM has ended it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sft_toolkit.cli.console import print_error

_PROGRESS = ".progress"  # shards.shard_folder.PROGRESS, whose module loads pyarrow


def print_stopped(how: str, values: Mapping[str, Any]) -> None:
    """Say how a command with these parameters was stopped, and how it is resumed where something of it is kept."""
    print_error(how, _how_to_resume(values))


def _how_to_resume(values: Mapping[str, Any]) -> str:
    output = values.get("output")
    if not output or str(output) == "-":
        return ""
    journal = Path(values.get("journal") or f"{str(output).rstrip('/')}.journal")
    if "journal" in values and journal.is_dir():
        return f"the same command resumes: replies so far are kept in {journal}"
    if (Path(output) / _PROGRESS).is_dir():
        again = "the same command resumes" if values.get("resume") else "the same command with --resume resumes"
        return f"{again}: finished shards are kept in {output}"
    if any(Path(output, "checkpoints").glob("step-*")):
        return f"the same command with --resume resumes from the newest checkpoint in {output}"
    return ""
