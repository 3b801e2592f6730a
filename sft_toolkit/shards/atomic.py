"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sft_toolkit.errors import ToolkitError


@contextmanager
def atomic_path(target: Path, within: Path | None = None) -> Iterator[Path]:
    """A temporary path in `within` (else beside `target`): on success fsynced and renamed, on failure removed.

    A target that is a link stays one: what it leads to is written. Raises ToolkitError when the disk is full or the
    folder cannot be written.
    """
    written = Path(os.path.realpath(target))
    temporary = temporary_path(written, within)
    try:
        yield temporary
        sync(temporary)
        os.replace(temporary, written)
        sync(written.parent)
    except OSError as fault:
        if fault.filename == str(temporary):
            fault.filename = str(target)
        raise explained(fault, target) from fault
    finally:
        temporary.unlink(missing_ok=True)


def temporary_path(target: Path, within: Path | None = None) -> Path:
    """A path in `within` (else beside `target`) for what is to be renamed to `target` once it is whole.

    It is of this call alone: the parts of an array job may write one target at the same time, from containers in
    which all have one process id.
    """
    return (within or target.parent) / f".{target.name}.{secrets.token_hex(4)}.tmp"


def explained(fault: OSError, target: Path) -> ToolkitError:
    """The sentence for what the file system refused, naming the file that it refused."""
    place = fault.filename or target
    if fault.errno == errno.ENOSPC:
        return ToolkitError(
            f"{place}: no space left on the disk", "free some, then run again; temporary files go to TMPDIR"
        )
    if fault.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ToolkitError(f"{place}: permission denied", "choose another folder or change its permissions")
    return ToolkitError(f"{place}: {fault.strerror or fault}")


def write_text(target: Path, text: str) -> None:
    """Write a small text file atomically."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_text_once(target: Path, text: str) -> bool:
    """As `write_text`, unless the file is there already: of several writers at once one returns True."""
    temporary = temporary_path(target)
    try:
        temporary.write_text(text, encoding="utf-8")
        sync(temporary)
        os.link(temporary, target)  # a link, unlike a rename, replaces nothing
        sync(target.parent)
    except FileExistsError:
        return False
    except OSError as fault:
        raise explained(fault, target) from fault
    finally:
        temporary.unlink(missing_ok=True)
    return True


def sync(path: Path) -> None:
    """Force a file or a folder's entries to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
