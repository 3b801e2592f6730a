"""What all tests share: where data lies, and the real command in a real process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RunCli = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real data by others, beside the checkout; tests that need it skip where it is absent."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip("no shared data beside the checkout")
    return path


@pytest.fixture(scope="session")
def sample_data() -> Path:
    return ROOT / "sample_data"


@pytest.fixture(scope="session")
def run_cli() -> RunCli:
    """`run_cli("mask", "x.jsonl", stdin=b"…")`: kolibri-sft in a process of its own, output captured as bytes."""

    def run(
        *arguments: str | Path,
        stdin: bytes | None = None,
        cwd: Path | None = None,
        environment: dict[str, str] | None = None,
        timeout: float = 240,
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            cli_command(*arguments),
            input=stdin if stdin is not None else b"",
            capture_output=True,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            timeout=timeout,
        )

    return run


def cli_command(*arguments: str | Path) -> Sequence[str]:
    """The command line that runs the installed console script under the interpreter of the tests."""
    script = Path(sys.executable).with_name("kolibri-sft")
    return [str(script), *map(str, arguments)]
