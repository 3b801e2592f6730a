"""What all tests share: where data lies, and the real command in a real process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "cases"
RunCli = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder whose `data/` holds real data by others; tests that need it skip where it is absent."""
    path = ROOT.parent / "shared"
    if not (path / "data").is_dir():
        pytest.skip("third-party data: ../shared/data is not beside this checkout")
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end which tests did not run, and why: a clean clone lacks the data of third parties."""
    skipped = terminalreporter.getreports("skipped")
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)  # (file, line, reason)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} {'test' if count == 1 else 'tests'} skipped: {reason}")
    slow = [item for item in terminalreporter.stats.get("deselected", ()) if item.get_closest_marker("slow")]
    if slow:
        terminalreporter.write_line(
            f"{len(slow)} slow {'test' if len(slow) == 1 else 'tests'} left out; run with -m slow"
        )
