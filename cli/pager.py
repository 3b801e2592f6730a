"""Text for a person at a terminal, a screen at a time."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_DEFAULT_PAGER = "less"
_DEFAULTS = {"LESS": "FX", "LESSCHARSET": "utf-8"}


@contextmanager
def paged(wanted: bool) -> Iterator[IO[str]]:
    """Where to write: $PAGER, less by default, else stdout itself. Whoever leaves the pager early has seen enough."""
    command = _command()
    pager = _start(command) if wanted and command else None
    if pager is None or pager.stdin is None:
        yield sys.stdout
        return
    interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield pager.stdin
    except BrokenPipeError:
        pass
    finally:
        with suppress(BrokenPipeError):
            pager.stdin.close()
        pager.wait()
        signal.signal(signal.SIGINT, interrupted)


def _command() -> list[str]:
    """Empty where $PAGER is, or where no shell could read it."""
    try:
        return shlex.split(os.environ.get("PAGER", _DEFAULT_PAGER))
    except ValueError:
        return []


def _start(command: list[str]) -> subprocess.Popen[str] | None:
    """less passes colours through only if asked to (-R), whatever else $LESS says."""
    if Path(command[0]).name == "less":
        command = [*command, "--RAW-CONTROL-CHARS"]
    environment = {**_DEFAULTS, **os.environ}
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, text=True, encoding="utf-8", env=environment)
    except OSError:
        return None
