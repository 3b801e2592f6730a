"""Folders that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.shards.atomic import sync


def require_free(target: Path, force: bool) -> None:
    """Raise UsageError where `target` is taken or has no folder to stand in."""
    if not target.parent.is_dir():
        raise UsageError(f"{target.parent}: no such folder", "create it first")
    if not force and target.exists() and not _is_empty_folder(target):
        raise UsageError(f"{target}: exists already", "choose another folder or replace it with --force")


def require_space(folder: Path, needed: int) -> None:
    """Raise ToolkitError where the disk has fewer than `needed` bytes."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ToolkitError(f"{folder}: {needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free", "free some")


@contextmanager
def whole_folder(target: Path, force: bool) -> Iterator[Path]:
    """A temporary folder beside `target`: on success forced to the disk and renamed, on failure removed."""
    require_free(target, force)
    temporary = target.parent / f".{target.name}.{os.getpid()}.tmp"
    try:
        temporary.mkdir()
        yield temporary
        sync(temporary)
        _replace(temporary, target)
        sync(target.parent)
    except OSError as fault:
        if fault.errno == errno.ENOSPC:
            raise ToolkitError(f"{target}: no space left on the disk", "free some, then run again") from fault
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _replace(new: Path, target: Path) -> None:
    """Rename; what stood there before moves displaced first, for a folder that is not empty cannot be renamed over."""
    if not target.exists() or _is_empty_folder(target):
        os.rename(new, target)
        return
    displaced = new.with_suffix(".old")
    os.rename(target, displaced)
    os.rename(new, target)
    if displaced.is_dir() and not displaced.is_symlink():
        shutil.rmtree(displaced)
    else:
        displaced.unlink()


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
