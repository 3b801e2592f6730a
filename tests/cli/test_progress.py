"""What a person sees while a command runs: on a terminal of any width, in a log, and when it ends."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from sft_toolkit.running.meter import Done, Meter
from tests.conftest import cli_command

# A stage that takes 8.5 ms a record, in a process like that of any command.
SLOW = """
import sys, time
from sft_toolkit.cli import main
from sft_toolkit.stages import mask
once = mask.MaskStage.process
def process(self, batch, outcome):
    for conversation in batch:
        time.sleep(0.0085)
    return once(self, batch, outcome)
mask.MaskStage.process = process
main.run()
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    record = {"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]}
    path.write_text("".join(json.dumps({"id": str(number), **record}) + "\n" for number in range(2000)))
    return path


def watch(command: list[str], seconds: float, columns: int, **environment: str) -> tuple[list[tuple[float, str]], int]:
    """What a terminal gets, with the time since the first byte; the command is interrupted after `seconds`."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = {**os.environ, "TERM": "xterm", **environment}
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, start_new_session=True
    )
    os.close(theirs)
    seen: list[tuple[float, str]] = []
    begun = None
    sent = False
    while True:
        try:
            text = os.read(ours, 65536).decode(errors="replace")
        except OSError:
            break
        begun = begun or time.monotonic()
        seen.append((time.monotonic() - begun, text))
        if not sent and time.monotonic() - begun > seconds:
            process.send_signal(signal.SIGINT)
            sent = True
    os.close(ours)
    return seen, process.wait(30)


def test_a_slow_run_shows_movement_and_the_time_left_within_a_second_in_any_width(source: Path, tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    command = [sys.executable, str(script), "mask", str(source), "-o", str(tmp_path / "out"), "--workers", "1"]
    seen, code = watch(command, 1.5, 44, NO_COLOR="1")
    text = "".join(part for _, part in seen)
    lines = text.split("\r\x1b[K")
    shown = [line for line in lines if " left" in line]
    first = next(when for when, part in seen if " left" in part)
    assert first < 2.0, "a second, and as much again for a busy machine"
    assert len(set(shown)) > 2, "it moves"
    assert re.match(r"mask: .*\d+% · 0:\d\d left · \d+ records", shown[-1])
    assert max(len(line.split("\r\n")[0]) for line in shown) <= 43
    assert "\x1b[3" not in text, "no colours"
    # Ctrl-C: the line is gone before the error, which says how to resume.
    assert code == 130
    assert lines[-1].startswith("error: interrupted; the same command with --resume resumes")


def test_a_quick_run_a_quiet_one_and_one_that_shows_never_leave_nothing_on_the_terminal(
    source: Path, tmp_path: Path
) -> None:
    for number, more in enumerate((["--progress", "never"], ["--quiet"])):
        command = [*cli_command("convert", source, "-o", tmp_path / f"out{number}", *more)]
        seen, code = watch(command, 60, 80)
        assert code == 0
        assert "\x1b[K" not in "".join(part for _, part in seen)


def test_in_a_log_there_is_a_line_each_half_minute_and_so_none_of_a_short_run(source: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        cli_command("convert", source, "-o", tmp_path / "out"), capture_output=True, text=True, check=True, timeout=60
    )
    assert "\r" not in done.stderr and " left" not in done.stderr


def test_a_meter_adds_up_what_all_processes_do_of_the_pass_that_was_begun_last() -> None:
    meter = Meter.started()
    try:
        workers = [Meter(*meter.__reduce__()[1]) for _ in range(3)]
        for worker in workers:
            worker.add(2, 20)
            worker.add(1, 10, skipped=5)
            worker.flush()
        assert meter.done() == Done(9, 90, 15)
        meter.begin(1000)
        assert meter.done() == Done(0, 0, 0)
        workers[0].add(1, 7)
        workers[0].flush()
        assert meter.done() == Done(1, 7, 0)
    finally:
        meter.close()
    workers[1].add(1, 1)  # a worker that outlives the display, or sees another machine's disk
    other = Meter("/nowhere/at/all")
    other.add(1, 1)
    other.flush()
