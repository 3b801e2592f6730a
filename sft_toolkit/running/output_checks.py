"""What is refused before any work: outputs that options cannot go with, or that would destroy what is there."""

from __future__ import annotations

import os
from pathlib import Path

from sft_toolkit.errors import UsageError
from sft_toolkit.running.options import RunOptions
from sft_toolkit.shards.input_names import is_on_disk
from sft_toolkit.shards.opening import STDIN
from sft_toolkit.shards.output import require_output_parent
from sft_toolkit.shards.remote import require_local
from sft_toolkit.shards.sources import Source

_FILES_NOT_WRITTEN = (".json", ".ndjson", ".parquet", ".arrow", ".csv", ".txt", ".gz", ".zst", ".bz2", ".xz", ".zip")


def check_folder_options(run: RunOptions) -> None:
    """Raise UsageError for options that a shard folder as output cannot honour, and where it holds the input."""
    require_local(run.output, "output")
    if run.resume and not Source(run.inputs).repeatable:
        raise UsageError("`resume` cannot read standard input or a pipe again", "write the records to a file first")
    if run.quarantine_file:
        raise UsageError("`quarantine_file` is for JSONL output", "a shard folder keeps them under quarantine/")
    if Path(run.output).suffix in _FILES_NOT_WRITTEN and not Path(run.output).is_dir():
        raise UsageError(f"{run.output}: no kind of file that is written", "name a folder, or FILE.jsonl[.gz|.zst]")
    if any(_is_within(path, Path(run.output)) for path in _input_files(run)):
        raise UsageError(f"{run.output}: is input and output", "name a new folder with `output`")


def check_stream_options(run: RunOptions) -> None:
    """Raise UsageError for options that JSONL output cannot honour, and where its files may not be written."""
    require_local(run.output, "output")
    require_local(run.quarantine_file or STDIN, "quarantine_file")
    if run.goes_on:
        raise UsageError("`resume` and `part` need a shard folder as `output`")
    if run.quarantine and run.quarantine_file is None:
        raise UsageError("`quarantine=True` needs a place", "add `quarantine_file=FILE.jsonl`, or write a shard folder")
    if run.output != STDIN:
        check_file(Path(run.output), run, force=run.force)
    if run.quarantine_file is not None:
        _check_quarantine(run, run.quarantine_file)


def check_file(target: Path, run: RunOptions, *, force: bool) -> None:
    """Raise UsageError where a file that a command makes of its input would be written over something.

    An input is never written over, whatever link leads to it.
    """
    if any(_is_same(target, path) for path in _input_files(run)):
        raise UsageError(f"{target}: is input and output", "name a new file with `output`")
    _require_free(target, force)


def _check_quarantine(run: RunOptions, name: str) -> None:
    if name == run.output or _is_same(Path(name), Path(run.output)):
        raise UsageError(f"`quarantine_file` {name}: is the output", "name a file of its own")
    if name == STDIN:
        return
    if any(_is_same(Path(name), path) for path in _input_files(run)):
        raise UsageError(f"`quarantine_file` {name}: is an input", "name a file of its own")
    _require_free(Path(name), run.force)


def _require_free(target: Path, force: bool) -> None:
    require_output_parent(target)
    if target.exists() and not force:
        raise UsageError(f"{target}: exists", "use `force=True` to replace it")


def _input_files(run: RunOptions) -> list[Path]:
    return [Path(name) for name in Source(run.inputs).inputs if is_on_disk(name)]


def _is_same(first: Path, second: Path) -> bool:
    """True where both lead to one file: by name, by a symbolic or by a hard link."""
    if os.path.realpath(first) == os.path.realpath(second):
        return True
    return first.exists() and second.exists() and first.samefile(second)


def _is_within(path: Path, folder: Path) -> bool:
    """True for a file in the folder or below it, by its own name or by where a link leads."""
    above = os.path.realpath(folder)
    return any(os.path.commonpath([above, name]) == above for name in (os.path.realpath(path), os.path.abspath(path)))
