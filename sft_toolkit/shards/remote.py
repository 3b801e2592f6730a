"""Inputs that are not on this machine, read through fsspec as they come: objects of a store, files of a web server.

JSONL is read so, also compressed. What has to be read from the middle (Parquet, Arrow, shard folders) is not, and
nothing is written there.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.shards.opening import line_chunks

# One slash: a Path drops the second. `hf:/folder` is a data set that the hub's library loads from the disk.
_URL = re.compile(r"(?!hf:/[^/])[a-z][a-z0-9+.-]+:/+[^/]", re.IGNORECASE)
_ANY_URL = re.compile(r"[a-z][a-z0-9+.-]+:/+[^/]", re.IGNORECASE)
_PATTERN = set("*?[")
_TO_GET = "get it first: a copy on the disk is read"


def is_remote(name: str) -> bool:
    """True for a URL: `s3://…`, `gs://…`, `hf://…`, `https://…`."""
    return _URL.match(name) is not None


def require_local(name: str, parameter: str) -> None:
    """Raise UsageError where a place that is written, the value of `parameter`, is a URL."""
    if _ANY_URL.match(name):
        scheme = name.partition(":")[0]
        raise UsageError(
            f"`{parameter}` {name}: nothing is written to {scheme}:// yet",
            "write to the disk, then copy the folder there",
        )


def remote_names(given: str) -> list[str]:
    """The URLs of a URL with wildcards, sorted; else the one. Raises UsageError where there is nothing."""
    system, path = _system(given)
    if not _PATTERN & set(path) or given.startswith("http"):
        return [given]
    try:
        found = [str(system.unstrip_protocol(one)) for one in sorted(system.glob(path))]
    except Exception as fault:
        raise _unread(given, fault) from fault
    if not found:
        raise UsageError(f"{given}: no such object", "check bucket and name")
    return found


def remote_pin(name: str) -> dict[str, Any]:
    """What identifies the content of an object: what its store says of it."""
    system, path = _system(name)
    try:
        about = system.info(path)
    except FileNotFoundError as fault:
        raise UsageError(f"{name}: no such object", "check bucket and name") from fault
    except Exception as fault:
        raise _unread(name, fault) from fault
    version = next(
        (str(about[key]) for key in ("ETag", "etag", "md5Hash", "LastModified", "mtime") if about.get(key)), ""
    )
    return {"name": name, "bytes": about.get("size"), "version": version}


def remote_chunks(name: str) -> Iterator[bytes]:
    """The lines of an object in chunks as they come, unwrapped. Raises ToolkitError where reading breaks off."""
    system, path = _system(name)
    try:
        with system.open(path, "rb") as file:
            yield from line_chunks(io.BufferedReader(file), name)
    except FileNotFoundError as fault:
        raise UsageError(f"{name}: no such object", "check bucket and name") from fault
    except (ToolkitError, GeneratorExit):
        raise
    except Exception as fault:
        raise _unread(name, fault) from fault


def _system(name: str) -> tuple[Any, str]:
    import fsspec

    try:
        return fsspec.core.url_to_fs(name)
    except ImportError as fault:
        raise UsageError(f"{name}: {fault}", f"or {_TO_GET}") from fault
    except ValueError as fault:
        raise UsageError(f"{name}: {fault}", _TO_GET) from fault
    except Exception as fault:
        raise _unread(name, fault) from fault


def _unread(name: str, fault: Exception) -> ToolkitError:
    reason = " ".join(str(fault).split()) or type(fault).__name__
    return ToolkitError(
        f"{name}: cannot be read: {reason}", "the same command with `resume=True` continues; or copy it here"
    )
