"""Ask what has not been answered yet, many questions at once, and write every reply to the journal as it comes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sft_toolkit.errors import ToolkitError
from sft_toolkit.teachers.journal import Journal, Replies
from sft_toolkit.teachers.pace import Pace, Patience
from sft_toolkit.teachers.replies import read_reply, read_usage
from sft_toolkit.teachers.requests import Asking, Request
from sft_toolkit.teachers.teacher import Busy, Faulty, RawReply, Setback, Teacher, Unreachable

_PROGRESS_SECONDS = 0.5
_MILLION = 1_000_000
_REFUSALS = 256


@dataclass(slots=True)
class AskingState:
    """How far the asking has come. `rows` counts input records taken up, `all_rows` those of the input, `handed_over`
    questions that were written to a file of a batch.

    Prices are per million tokens; `setbacks` counts what went wrong on the way, by kind.
    """

    all_rows: int = 0
    rows: int = 0
    kept: int = 0
    answered: int = 0
    given_up: int = 0
    under_way: int = 0
    handed_over: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    price_in: float = 0.0
    price_out: float = 0.0
    setbacks: Counter[str] = field(default_factory=Counter)

    @property
    def cost(self) -> float:
        return (self.tokens_in * self.price_in + self.tokens_out * self.price_out) / _MILLION

    def line(self, seconds: float) -> str:
        """One line for a person."""
        rate = self.tokens_out / seconds if seconds > 0 else 0.0
        parts = [
            f"{self.under_way} in flight, {self.answered:,} answered, {self.kept:,} kept from before",
            f"{self.tokens_in:,} tokens in, {self.tokens_out:,} out, {rate:,.0f}/s",
        ]
        if self.price_in or self.price_out:
            parts.append(f"cost {self.cost:,.2f}")
        if self.setbacks:
            parts.append(f"{self.setbacks.total():,} setbacks")
        left = self._seconds_left(seconds)
        if left is not None:
            parts.append(f"about {left / 60:,.0f} min left" if left >= 90 else f"about {left:,.0f} s left")
        return "; ".join(parts)

    def _seconds_left(self, seconds: float) -> float | None:
        done = self.rows - self.under_way
        return seconds * (self.all_rows - done) / done if self.answered and done > 0 and self.all_rows else None

    def to_json(self) -> dict[str, object]:
        return {
            "answered": self.answered,
            "kept": self.kept,
            "given_up": self.given_up,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "cost": round(self.cost, 4),
            "setbacks": dict(sorted(self.setbacks.items())),
        }


class Asker:
    """Asks `teacher`, at most `most` questions at once. `show` is called with the state twice a second."""

    def __init__(
        self,
        teacher: Teacher,
        asking: Asking,
        journal: Journal,
        *,
        most: int,
        patience: Patience,
        state: AskingState,
        show: Callable[[AskingState], None],
    ) -> None:
        self._teacher = teacher
        self._asking = asking
        self._journal = journal
        self._patience = patience
        self._pace = Pace(min(most, teacher.at_once or most), patience)
        self._state = state
        self._show = show
        self._asked: set[str] = set()
        self._under_way: set[asyncio.Task[None]] = set()
        self._is_over = False
        self._has_answered = len(journal.replies) > 0
        self._refused: list[tuple[str, RawReply]] = []

    async def ask_all(self, requests: Iterator[Request]) -> None:
        """Ask all questions that the journal does not answer; those that fail for good are counted as given up.

        Raises TryAgain where the teacher is gone, and ToolkitError where no question can be answered. Replies that are
        under way by then are waited for: they are paid for.
        """
        missing = self._missing(requests)
        progress = asyncio.create_task(self._show_progress())
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._pace.most):
                    group.create_task(self._work(missing))
            if self._refused:
                raise self._all_refused()
        except BaseExceptionGroup as faults:
            fault = _first(faults)
            if isinstance(fault, ToolkitError) and self._under_way and not self._journal.is_broken:
                await asyncio.wait(self._under_way, timeout=self._patience.give_up)
            raise fault from None
        finally:
            for task in self._under_way:
                task.cancel()
            await asyncio.gather(*self._under_way, return_exceptions=True)
            progress.cancel()
            self._show(self._state)

    def _missing(self, requests: Iterator[Request]) -> Iterator[tuple[str, Request]]:
        for request in requests:
            key = self._asking.key(request)
            if is_answered(self._journal.replies, self._asking, request, key):
                self._state.kept += 1
            elif key not in self._asked:
                self._asked.add(key)
                yield key, request

    async def _work(self, missing: Iterator[tuple[str, Request]]) -> None:
        for key, request in missing:
            if not await self._ask(key, request):
                self._state.given_up += 1
            self._asked.discard(key)

    async def _ask(self, key: str, request: Request) -> bool:
        """False where every attempt failed."""
        for attempt in range(1, self._patience.attempts + 1):
            if await self._attempt(key, request):
                return True
            if attempt < self._patience.attempts:
                await asyncio.sleep(self._patience.delay(attempt))
        return False

    async def _attempt(self, key: str, request: Request) -> bool:
        """One attempt; one that a busy or unreachable teacher did not hear does not count."""
        while True:
            async with self._pace.turn():
                if self._is_over:
                    return False
                try:
                    await asyncio.shield(self._hearing(key, request))
                except (Busy, Unreachable) as setback:
                    self._count(key, setback)
                    self._pace.refused_for_now(str(setback), setback.wait if isinstance(setback, Busy) else None)
                    continue
                except Faulty as setback:
                    self._count(key, setback)
                    self._pace.failed(str(setback))
                    return False
            self._pace.answered()
            return True

    def _hearing(self, key: str, request: Request) -> asyncio.Task[None]:
        """A task of its own, which outlives the worker that waits for it."""
        task = asyncio.create_task(self._hear(key, request))
        self._under_way.add(task)
        task.add_done_callback(self._let_go)
        return task

    def _let_go(self, task: asyncio.Task[None]) -> None:
        """Take note of a fault that nobody waits for any more: the run is ending for the first one."""
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()

    async def _hear(self, key: str, request: Request) -> None:
        """Ask once; the reply is kept before anything else can happen to it."""
        self._state.under_way += 1
        try:
            self._keep(key, await self._teacher.ask(self._asking, request))
        except ToolkitError:
            self._is_over = True
            raise
        finally:
            self._state.under_way -= 1

    def _keep(self, key: str, reply: RawReply) -> None:
        """Refusals wait for the first answer: without one it is not the questions that are refused.

        Raises ToolkitError where refusals are all that comes.
        """
        if reply.status >= 400 and not self._has_answered:
            self._refused.append((key, reply))
            if len(self._refused) >= _REFUSALS:
                raise self._all_refused()
            return
        self._has_answered = True
        for each in [*self._refused, (key, reply)]:
            self._write(*each)
        self._refused.clear()

    def _write(self, key: str, reply: RawReply) -> None:
        self._journal.append(key, reply)
        usage = read_usage(reply)
        self._state.answered += 1
        self._state.tokens_in += usage.tokens_in
        self._state.tokens_out += usage.tokens_out

    def _all_refused(self) -> ToolkitError:
        why = read_reply(self._refused[0][1]).refusal
        return ToolkitError(f"the teacher refuses every question, {len(self._refused)} so far: {why}", _FIX)

    def _count(self, key: str, setback: Setback) -> None:
        if setback.body:
            self._journal.note_fault(key, str(setback), setback.body)
        self._state.setbacks[f"{type(setback).__name__.lower()}: {str(setback)[:60]}"] += 1

    async def _show_progress(self) -> None:
        while True:
            self._show(self._state)
            await asyncio.sleep(_PROGRESS_SECONDS)


_FIX = "fix what it names, then run the same command again: no refusal was kept"


def is_answered(replies: Replies, asking: Asking, request: Request, key: str) -> bool:
    """True where a journal holds the reply to `request`, whose key is `key`."""
    return key in replies or bool(asking.earlier and replies.answer(asking, request, even_cut=False))


def _first(faults: BaseExceptionGroup[BaseException]) -> BaseException:
    fault = faults.exceptions[0]
    return _first(fault) if isinstance(fault, BaseExceptionGroup) else fault
