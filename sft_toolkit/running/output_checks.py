"""What is refused before any work: outputs that options cannot go with, or that would destroy what is there."""

from __future__ import annotations

from pathlib import Path

from sft_toolkit.errors import UsageError
from sft_toolkit.running.options import RunOptions
from sft_toolkit.shards.output import require_output_parent
from sft_toolkit.shards.sources import STDIN, Source

_FILES_NOT_WRITTEN = (".json", ".ndjson", ".parquet", ".arrow", ".csv", ".txt", ".gz", ".zst", ".bz2", ".xz", ".zip")


def check_folder_options(run: RunOptions) -> None:
    """Raise UsageError for options that a shard folder as output cannot honour, and where it holds the input."""
    if run.resume and not Source(run.inputs).repeatable:
        raise UsageError("`resume` cannot read standard input again", "write the records to a file first")
    if run.quarantine_file:
        raise UsageError("`quarantine_file` is for JSONL output", "a shard folder keeps them under quarantine/")
    if Path(run.output).suffix in _FILES_NOT_WRITTEN and not Path(run.output).is_dir():
        raise UsageError(f"{run.output}: no kind of file that is written", "name a folder, or FILE.jsonl[.gz|.zst]")
    if any(Path(run.output).resolve() in path.parents for path in _input_files(run)):
        raise UsageError(f"{run.output}: is input and output", "name a new folder with `output`")


def check_stream_options(run: RunOptions) -> None:
    """Raise UsageError for options that JSONL output cannot honour, and where its files may not be written."""
    if run.goes_on:
        raise UsageError("`resume` and `part` need a shard folder as `output`")
    if run.quarantine and run.quarantine_file is None:
        raise UsageError("`quarantine=True` needs a place", "add `quarantine_file=FILE.jsonl`, or write a shard folder")
    if run.output != STDIN:
        _require_free(Path(run.output), run.force)
    if run.quarantine_file is not None:
        _check_quarantine(run, run.quarantine_file)


def check_file(target: Path, run: RunOptions, *, force: bool) -> None:
    """Raise UsageError where a file that a command makes of its input would be written over something."""
    if target.resolve() in _input_files(run):
        raise UsageError(f"{target}: is input and output", "name a new file with `output`")
    _require_free(target, force)


def _check_quarantine(run: RunOptions, name: str) -> None:
    if name == run.output or Path(name).resolve() == Path(run.output).resolve():
        raise UsageError(f"`quarantine_file` {name}: is the output", "name a file of its own")
    if name == STDIN:
        return
    if Path(name).resolve() in _input_files(run):
        raise UsageError(f"`quarantine_file` {name}: is an input", "name a file of its own")
    _require_free(Path(name), run.force)


def _require_free(target: Path, force: bool) -> None:
    require_output_parent(target)
    if target.exists() and not force:
        raise UsageError(f"{target}: exists", "use `force=True` to replace it")


def _input_files(run: RunOptions) -> set[Path]:
    return {Path(name).resolve() for name in Source(run.inputs).inputs if name != STDIN and not name.startswith("hf:")}
