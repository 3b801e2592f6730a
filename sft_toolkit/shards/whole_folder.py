"""Folders that appear whole or not at all, and replace nothing but what this tool has written."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.shards.atomic import explained, sync, temporary_path


def require_space(folder: Path, needed: int) -> None:
    """Raise ToolkitError where the disk has fewer than `needed` bytes."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ToolkitError(f"{folder}: {needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free", "free some")


def require_free(target: Path, mark: str, *, force: bool) -> None:
    """Refuse, before any work, what `whole_folder` would refuse.

    `mark` is a file that each folder of this kind holds. What holds it is replaced with `force`, and so is a link;
    anything else that is not empty never is. Raises UsageError, or ToolkitError where nothing can be written.
    """
    parent = next(folder for folder in target.absolute().parents if folder.exists())
    if not parent.is_dir():
        raise UsageError(f"{parent}: is a file", "choose another folder")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise explained(PermissionError(errno.EACCES, "permission denied"), parent)
    if _is_free(target):
        return
    if not (target.is_symlink() or (target / mark).is_file()):
        kind = f"is not empty and holds no {mark}" if target.is_dir() else "is a file"
        raise UsageError(f"{target}: {kind}", "choose another folder")
    if not force:
        raise UsageError(f"{target}: exists already", "choose another folder or replace it with `force=True`")


@contextmanager
def whole_folder(target: Path, mark: str, *, force: bool) -> Iterator[Path]:
    """A temporary folder beside `target`: on success forced to the disk and renamed, on failure removed.

    The folder is of this call alone, whatever a killed run left beside it. Of two writers of one target the first to
    end wins whole, and the other is refused with UsageError, also with `force`: that replaces what stood there when
    this one began. Raises as `require_free` does, and ToolkitError for what the file system refuses.
    """
    require_free(target, mark, force=force)
    replaced = _identity(target, mark)
    temporary = temporary_path(target)
    try:
        temporary.mkdir(parents=True)
        yield temporary
        sync(temporary)
        _put(temporary, target, mark, replaced)
        sync(target.parent)
    except OSError as fault:
        raise explained(fault, target) from fault
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _put(new: Path, target: Path, mark: str, replaced: tuple[int, int] | None) -> None:
    """Rename; what stood there before moves aside first, for a folder that is not empty cannot be renamed over."""
    displaced = new.with_suffix(".old")
    if replaced is not None:
        os.rename(target, displaced)
        if _identity(displaced, mark) != replaced:
            os.rename(displaced, target)
            raise _taken(target)
    try:
        os.rename(new, target)
    except OSError as fault:
        if fault.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise _taken(target) from fault
        raise
    finally:
        _remove(displaced)


def _taken(target: Path) -> UsageError:
    return UsageError(
        f"{target}: another run has written it meanwhile", "what it wrote is kept; choose another folder for this one"
    )


def _identity(folder: Path, mark: str) -> tuple[int, int] | None:
    """What distinguishes one writing of a folder from the next: its mark is written once. None for a free folder."""
    if _is_free(folder):
        return None
    found = folder.lstat() if folder.is_symlink() else (folder / mark).stat()
    return found.st_ino, found.st_mtime_ns


def _is_free(path: Path) -> bool:
    if path.is_symlink():
        return False
    return not path.exists() or (path.is_dir() and not any(path.iterdir()))


def _remove(path: Path) -> None:
    if path.is_symlink():
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)
