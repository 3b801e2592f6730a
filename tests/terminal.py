"""The real command on a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Iterator
from typing import Any

from tests.conftest import cli_command


def on_terminal(arguments: list[Any], **environment: str) -> tuple[int, str]:
    """Exit code and all that a terminal of 80 columns gets to see. A variable given as "" is taken away."""
    ours, theirs = pty.openpty()
    variables = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **environment}
    given = {name: value for name, value in variables.items() if value}
    process = subprocess.Popen(cli_command(*arguments), stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=given)
    os.close(theirs)
    seen = b"".join(_chunks(ours))
    os.close(ours)
    return process.wait(timeout=60), seen.decode().replace("\r\n", "\n")


def _chunks(terminal: int) -> Iterator[bytes]:
    """What is written until the last writer has gone, which Linux signals by an error."""
    try:
        while chunk := os.read(terminal, 65536):
            yield chunk
    except OSError:
        return


def bare(seen: str) -> str:
    """Without the codes for colour."""
    return re.sub("\x1b\\[[0-9;]*m", "", seen)
