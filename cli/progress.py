"""How far a command is: a line that renews itself on a terminal, a line every half minute elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING

from sft_toolkit.choices import ProgressMode
from sft_toolkit.visible import visible

if TYPE_CHECKING:
    from sft_toolkit.running.meter import Meter
    from sft_toolkit.stage import Progress

_SECONDS_TO_FIRST = 0.3
_SECONDS_ON_TERMINAL = 0.1
_SECONDS_ELSEWHERE = 30.0
_WIDTH_UNKNOWN = 80
_BAR = range(8, 31)
"""Columns that a bar may have."""
_ERASE = "\r\033[K"


class NoProgress:
    """Shows nothing."""

    meter: Meter | None = None

    def __call__(self, progress: Progress) -> None:
        """A block is finished."""


class ProgressLine(NoProgress):
    """Shows what the meter sees, or what finished blocks report, from its making until `close`."""

    def __init__(self, name: str, meter: Meter, renewed: bool) -> None:
        self.meter: Meter = meter
        self._name = name
        self._renewed = renewed
        self._reported: Progress | None = None
        self._begun = time.monotonic()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._drawn = False
        threading.Thread(target=self._run, daemon=True).start()

    def __call__(self, progress: Progress) -> None:
        self._reported = progress

    def close(self) -> None:
        """Take the line off the terminal, and draw no more."""
        with self._lock:
            if not self._closed.is_set():
                self._closed.set()
                self._erase()
                self.meter.close()

    def erase(self) -> None:
        """Take the line off the terminal until it is drawn again."""
        with self._lock:
            self._erase()

    def _erase(self) -> None:
        if self._drawn:
            print(_ERASE, end="", file=sys.stderr, flush=True)
            self._drawn = False

    def _run(self) -> None:
        wait = _SECONDS_TO_FIRST if self._renewed else _SECONDS_ELSEWHERE
        while not self._closed.wait(wait):
            wait = _SECONDS_ON_TERMINAL if self._renewed else _SECONDS_ELSEWHERE
            with self._lock:
                if not self._closed.is_set():
                    self._draw()

    def _draw(self) -> None:
        text = self._text(_columns() - 1 if self._renewed else None)
        try:
            print(
                f"{_ERASE}{visible(text)}" if self._renewed else visible(text),
                end="" if self._renewed else "\n",
                file=sys.stderr,
            )
            sys.stderr.flush()
        except (OSError, ValueError):  # nobody reads it any more
            self._closed.set()
        self._drawn = self._renewed

    def _text(self, columns: int | None) -> str:
        seconds = time.monotonic() - self._begun
        done, total = self.meter.done(), self.meter.total
        of_pass = time.monotonic() - self.meter.begun
        reported = self._reported
        if not done.rows or (reported is not None and not total and not hasattr(reported, "records_in")):
            text = f"{self._name}: {_clock(seconds)}" + (f" · {reported.line(seconds)}" if reported else "")
            return text[:columns]
        facts = [f"{done.rows:,} records", f"{done.rows / max(of_pass, 1e-9):,.0f}/s"]
        if not total:
            return f"{self._name}: {_clock(seconds)} · {' · '.join(facts)}"[:columns]
        share = min((done.size + done.skipped) / total, 1.0)
        left = of_pass * max(total - done.size - done.skipped, 0) / max(done.size, 1)
        text = " · ".join([f"{share:.0%}", f"{_clock(left)} left", *facts])
        if columns is None:
            return f"{self._name}: {text}"
        room = min(columns - len(self._name) - len(text) - 3, _BAR[-1])
        bar = f"{_bar(share, room)} " if room in _BAR else ""
        return f"{self._name}: {bar}{text}"[:columns]


_active: ProgressLine | None = None


def progress_display(mode: ProgressMode, *, silent: bool, name: str, to_stdout: bool) -> NoProgress:
    """What shows how far a command is, until `clear_progress`: nothing where it is `silent` or mode "never".

    A command that writes data to a stdout that is the terminal gets no line there, which data would tear apart.
    """
    global _active
    clear_progress()
    renewed = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    torn = to_stdout and renewed and sys.stdout.isatty()
    if silent or mode == "never" or (mode == "auto" and torn):
        return NoProgress()
    from sft_toolkit.running.meter import Meter

    _active = ProgressLine(name, Meter.started(), renewed)
    return _active


def clear_progress() -> None:
    """End the display: nothing of it is left on the terminal."""
    global _active
    if _active is not None:
        _active.close()
        _active = None


def hide_progress() -> None:
    """Take the line off the terminal for what is printed now; it comes back."""
    if _active is not None:
        _active.erase()


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or _WIDTH_UNKNOWN
    except (OSError, ValueError):
        return _WIDTH_UNKNOWN


def _bar(share: float, width: int) -> str:
    full = round(share * width)
    plain = "utf" not in (sys.stderr.encoding or "").lower()
    return ("#" if plain else "━") * full + ("-" if plain else "─") * (width - full)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
