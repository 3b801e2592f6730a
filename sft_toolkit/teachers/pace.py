"""How fast a teacher is asked: as fast as it bears, together with patience when it does not answer."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sft_toolkit.errors import TryAgain

_FIRST_WINDOW = 4
_TRIPS_AFTER = 12


@dataclass(frozen=True, slots=True)
class Patience:
    """`attempts` per question; `backoff` seconds before the second, doubled for each one after it up to `longest`.

    `give_up` is how many seconds without any answer make the run end, to be resumed later.
    """

    attempts: int = 6
    backoff: float = 0.5
    longest: float = 60.0
    give_up: float = 300.0

    def delay(self, setbacks: int) -> float:
        """Seconds to wait after so many setbacks: exponential, and jittered by up to a half (1, 2, 4 … times base)."""
        return min(self.longest, self.backoff * 2 ** min(setbacks - 1, 30)) * random.uniform(0.5, 1.0)


class Pace:
    """Shared by all that ask: a window on how many questions are under way, and a pause that holds for everyone.

    The window doubles per round of answers until the teacher first complains, then grows by one per round, and
    halves with every complaint (additive increase, multiplicative decrease: Chiu and Jain 1989). After twelve setbacks
    without an answer in between, one question at a time is let through, until one is answered.
    """

    def __init__(self, most: int, patience: Patience) -> None:
        self.most = most
        self.under_way = 0
        self._patience = patience
        self._window = float(min(most, _FIRST_WINDOW))
        self._has_complained = False
        self._resume_at = 0.0
        self._setbacks = 0
        self._pauses = 0
        self._trouble_since: float | None = None
        self._changed = asyncio.Condition()

    @property
    def window(self) -> int:
        """Questions that may be under way at once."""
        return 1 if self._setbacks >= _TRIPS_AFTER else int(self._window)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a place in the window and for the end of a pause."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.under_way < self.window)
            self.under_way += 1
        try:
            while (left := self._resume_at - time.monotonic()) > 0:
                await asyncio.sleep(left)
            yield
        finally:
            async with self._changed:
                self.under_way -= 1
                self._changed.notify_all()

    def answered(self) -> None:
        self._setbacks = self._pauses = 0
        self._trouble_since = None
        self._window = min(self.most, self._window + (1 / self._window if self._has_complained else 1))

    def failed(self, detail: str) -> None:
        """One question failed. Raises TryAgain when nothing has been answered for too long."""
        self._setbacks += 1
        if self._setbacks >= _TRIPS_AFTER:
            self._pause(None)
        self._note_trouble(detail)

    def refused_for_now(self, detail: str, wait: float | None) -> None:
        """The teacher is busy or gone: everyone waits. Raises TryAgain when that takes too long."""
        if wait is not None and wait > self._patience.give_up:
            raise TryAgain(f"the teacher wants to be left alone for {wait:.0f} s: {detail}", _LATER)
        self._pause(wait)
        self._note_trouble(detail)

    def _pause(self, wait: float | None) -> None:
        """Begin a pause, or prolong it; complaints that arrive during one are of the same moment and halve once."""
        now = time.monotonic()
        if now >= self._resume_at:
            self._pauses += 1
            self._has_complained = True
            self._window = max(1.0, self._window / 2)
            self._resume_at = now + (self._patience.delay(self._pauses) if wait is None else 0.0)
        if wait is not None:
            self._resume_at = max(self._resume_at, now + wait)

    def _note_trouble(self, detail: str) -> None:
        now = time.monotonic()
        if self._trouble_since is None:
            self._trouble_since = now
        elif now - self._trouble_since > self._patience.give_up:
            raise TryAgain(f"the teacher has not answered for {now - self._trouble_since:.0f} s: {detail}", _LATER)


_LATER = "run the same command again: what was answered is kept"
