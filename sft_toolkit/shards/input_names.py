"""INPUT arguments and what they stand for: files, globs, folders, shard folders, streams, hub data sets and URLs."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Any

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.json_text import decode
from sft_toolkit.shards.opening import COMPRESSED, is_stream, plain_name
from sft_toolkit.shards.remote import is_remote, remote_names
from sft_toolkit.shards.shard_folder import ShardFolder, is_plain_name, is_shard_folder

HUB = "hf:"
TABLES = (".parquet", ".arrow")
_LINES = (".jsonl", ".ndjson", ".json")
_KNOWN = ".jsonl, .ndjson and .json, also with .gz, .zst, .bz2 or .xz; .parquet, .arrow; or - for standard input"


def resolve(given: str) -> list[str]:
    """The inputs that an argument stands for. Raises UsageError for one that is not there or of no known kind."""
    given = plain_name(given)
    if is_remote(given):
        return remote_names(_remote_kind(given))
    if given.startswith(HUB):
        _require_hub_name(given)
    if given.startswith(HUB) or is_stream(given):
        return [given]
    _require_target(given)
    path = Path(given)
    if path.is_dir():
        return _resolve_folder(path)
    if path.exists():
        return [_known_kind(given)]
    found = sorted(glob.glob(given, recursive=True))
    if not found:
        raise UsageError(f"{given}: no such file or folder", "give files, globs, shard folders, hf:NAME[:SPLIT] or -")
    return [name for match in found for name in resolve(match)]


def _resolve_folder(path: Path) -> list[str]:
    if is_shard_folder(path):
        return [str(shard) for shard in ShardFolder(path).paths]
    if files := _fact_of_datasets(path / "state.json", "_data_files"):
        return [str(path / _plain_name(path / "state.json", entry)) for entry in files]
    if splits := _fact_of_datasets(path / "dataset_dict.json", "splits"):
        raise UsageError(
            f"{path}: holds several splits", f"name the folder of one of them: {', '.join(map(str, splits))}"
        )
    found = _data_files(path)
    if not found:
        inner = next((folder for folder in sorted(path.iterdir()) if folder.is_dir() and _data_files(folder)), None)
        where = f"they are in {inner}: name that folder" if inner else "name the folder or the files that do"
        raise UsageError(f"{path}: holds no JSONL, Parquet or Arrow files", where)
    for name in found:
        _require_target(name)
    return found


def _data_files(folder: Path) -> list[str]:
    return sorted(str(file) for file in folder.iterdir() if _kind_suffix(file.name) in (*_LINES, *TABLES))


def _require_target(name: str) -> None:
    """Raise UsageError for a link that leads nowhere, or to itself."""
    if os.path.islink(name) and not os.path.exists(name):
        raise UsageError(f"{name}: is a link to {os.readlink(name)}, where nothing is", "fix or remove the link")


def _fact_of_datasets(path: Path, key: str) -> list[Any]:
    """A list in a file that `datasets` writes beside its data; empty where the file is none of those."""
    try:
        held = decode(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return []
    found = held.get(key) if isinstance(held, dict) else None
    return found if isinstance(found, list) else []


def _plain_name(path: Path, entry: Any) -> str:
    """The name of a data file beside `path`. Raises ToolkitError for anything else, such as a place elsewhere."""
    name = entry.get("filename") if isinstance(entry, dict) else None
    if not is_plain_name(name):
        raise ToolkitError(f"{path}: {name if name is not None else entry!r} is not the name of a file beside it")
    return str(name)


def _known_kind(name: str) -> str:
    if _kind_suffix(name) not in (*_LINES, *TABLES):
        raise UsageError(f"{name}: unknown kind of file", f"known: {_KNOWN}")
    return name


def _require_hub_name(given: str) -> None:
    name = given.removeprefix(HUB).partition(":")[0]
    if not name:
        raise UsageError(f"{given}: names no data set", "write hf:NAME or hf:NAME:SPLIT")


def _remote_kind(name: str) -> str:
    if _kind_suffix(name.partition("?")[0]) not in _LINES:
        raise UsageError(f"{name}: only JSONL is read from there", "copy files and shard folders of other kinds here")
    return name


def _kind_suffix(name: str) -> str:
    name = name.lower()
    for suffix in COMPRESSED:
        if name.endswith(suffix):
            stem_suffix = Path(name.removesuffix(suffix)).suffix
            return stem_suffix if stem_suffix in _LINES else ""
    return Path(name).suffix


def is_on_disk(name: str) -> bool:
    """True for an input that is a file here, which can be read from the middle."""
    return not is_stream(name) and not name.startswith(HUB) and not is_remote(name)
