"""Ctrl-C ends a command in time, also where native code does not look at signals."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

NATIVE = """
import hashlib, sys
from sft_toolkit.cli.guard import guarded
from sft_toolkit.running.drivers import run_ordered

def derive(rounds):
    print("begun", file=sys.stderr, flush=True)
    return hashlib.pbkdf2_hmac("sha256", b"", b"", rounds)

def run(workers):
    list(run_ordered("local", iter([2**30] * 4), derive, workers))

if __name__ == "__main__":
    guarded(run)(int(sys.argv[1]))
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_native_code_that_runs_for_minutes_does_not_hold_ctrl_c_up(tmp_path: Path, workers: int) -> None:
    script = tmp_path / "native.py"
    script.write_text(NATIVE)
    running = subprocess.Popen([sys.executable, script, str(workers)], stderr=subprocess.PIPE)
    assert running.stderr is not None
    assert running.stderr.readline() == b"begun\n"
    running.send_signal(signal.SIGINT)
    begun = time.monotonic()
    assert running.wait(30) == 130
    assert time.monotonic() - begun < 10, "far above the two seconds, for slow machines, and far below the work"
