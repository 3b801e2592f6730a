"""Batches at an endpoint: questions are handed over as a file, and their replies fetched when they are done.

Each batch is noted in the journal's folder before and after every step, so that a run that was killed at any point
finds it again: nothing is submitted twice, and nothing that was answered is lost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sft_toolkit.errors import ToolkitError, TryAgain
from sft_toolkit.json_text import decode, encode_text
from sft_toolkit.teachers.asking import AskingState
from sft_toolkit.teachers.batch_lines import Question, read_replies, write_batches
from sft_toolkit.teachers.journal import Journal
from sft_toolkit.teachers.journal_config import write_private
from sft_toolkit.teachers.pace import Patience
from sft_toolkit.teachers.replies import error_message, read_usage
from sft_toolkit.teachers.teacher import BatchEndpoint, Setback

_WINDOW = "24h"
_DONE = "completed"
_OVER = frozenset({_DONE, "failed", "expired", "cancelled"})
_NOTE = ".note"
_UNDER_WAY = "run the same command again: the batch goes on meanwhile, and is found again"


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch under way: `questions` is its file in the journal's folder, the ids are the provider's or still ""."""

    questions: str
    url: str
    lines: int
    file_id: str = ""
    batch_id: str = ""


class BatchAsker:
    """Asks by batches: `journal` gets the replies, `state` counts; the provider is looked at every `poll` seconds."""

    def __init__(
        self,
        endpoint: BatchEndpoint,
        folder: Path,
        journal: Journal,
        *,
        state: AskingState,
        show: Callable[[AskingState], None],
        patience: Patience,
        poll: float,
    ) -> None:
        self._endpoint = endpoint
        self._folder = folder / "batches"
        self._journal = journal
        self._state = state
        self._show = show
        self._patience = patience
        self._poll = poll

    async def fetch_earlier(self) -> None:
        """Wait for the batches of an earlier run, and take over their replies."""
        for note in sorted(self._folder.glob(f"*{_NOTE}")):
            await self._finish(Batch(**decode(note.read_bytes())))

    async def ask_all(self, questions: Iterable[Question]) -> None:
        """Hand over all questions, and wait for their replies; those that get none are counted as given up."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        batches = [
            Batch(file.path.name, file.url, file.lines)
            for file in write_batches(self._folder / f"{time.time_ns()}.jsonl", questions)
        ]
        for batch in batches:
            self._note(batch)
        submitted = [await self._submitted(batch) for batch in batches]
        for batch in submitted:
            await self._finish(batch)

    async def _finish(self, batch: Batch) -> None:
        batch = await self._submitted(batch)
        self._state.under_way += batch.lines
        try:
            found = await self._over(batch)
            answered = await self._take_over(found)
        finally:
            self._state.under_way -= batch.lines
        self._state.given_up += batch.lines - answered
        self._forget(batch)
        if found["status"] != _DONE and not answered:
            said = f"batch {batch.batch_id} {found['status']}: {_why(found)}"
            raise ToolkitError(said, "fix what it names, then run the same command again")

    async def _submitted(self, batch: Batch) -> Batch:
        """The batch with its ids, each noted as soon as it is known."""
        if not batch.file_id:
            batch = replace(batch, file_id=await self._patiently(self._endpoint.upload, self._path(batch)))
            self._note(batch)
        if not batch.batch_id:
            batch = replace(batch, batch_id=await self._patiently(self._found_or_created, batch))
            self._note(batch)
        return batch

    async def _found_or_created(self, batch: Batch) -> str:
        """The id of the batch; one that was created before its id was noted is found by its file."""
        known = await self._endpoint.call("GET", "/batches?limit=100")
        for each in known.get("data") or []:
            if each.get("input_file_id") == batch.file_id:
                return str(each["id"])
        wanted = {"input_file_id": batch.file_id, "endpoint": batch.url, "completion_window": _WINDOW}
        return str((await self._endpoint.call("POST", "/batches", wanted))["id"])

    async def _over(self, batch: Batch) -> dict[str, Any]:
        """The batch as its provider describes it, once it is over."""
        while True:
            found: dict[str, Any] = await self._patiently(self._endpoint.call, "GET", f"/batches/{batch.batch_id}")
            self._show(self._state)
            if found.get("status") in _OVER:
                return found
            await asyncio.sleep(self._poll)

    async def _take_over(self, found: dict[str, Any]) -> int:
        """Write the replies into the journal; how many questions they answer."""
        answered = 0
        for file_id in filter(None, (found.get("output_file_id"), found.get("error_file_id"))):
            content = await self._patiently(self._endpoint.content, file_id)
            answered += take_over(content.splitlines(), self._journal, self._state)
        return answered

    async def _patiently(self, call: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """The result of the call, tried again after setbacks. Raises TryAgain where they take too long."""
        begun, setbacks = time.monotonic(), 0
        while True:
            try:
                return await call(*arguments)
            except Setback as setback:
                setbacks += 1
                self._state.setbacks[f"{type(setback).__name__.lower()}: {str(setback)[:60]}"] += 1
                if time.monotonic() - begun > self._patience.give_up:
                    raise TryAgain(f"the batch endpoint does not answer: {setback}", _UNDER_WAY) from setback
                await asyncio.sleep(self._patience.delay(setbacks))

    def _path(self, batch: Batch) -> Path:
        return self._folder / batch.questions

    def _note(self, batch: Batch) -> None:
        write_private(self._path(batch).with_suffix(_NOTE), encode_text(asdict(batch)))

    def _forget(self, batch: Batch) -> None:
        self._path(batch).with_suffix(_NOTE).unlink(missing_ok=True)
        self._path(batch).unlink(missing_ok=True)


def take_over(lines: Iterable[bytes], journal: Journal, state: AskingState) -> int:
    """Write the final replies among the lines of a batch into the journal; how many questions they answer.

    What is said of the others is counted among the setbacks, by kind.
    """
    answered = 0
    for key, reply, said in read_replies(lines):
        if reply is None:
            state.setbacks[f"batch: {said[:60]}"] += 1
            continue
        answered += 1
        if key not in journal.replies:
            journal.append(key, reply)
            usage = read_usage(reply)
            state.answered += 1
            state.tokens_in += usage.tokens_in
            state.tokens_out += usage.tokens_out
    return answered


def _why(found: dict[str, Any]) -> str:
    errors = found.get("errors")
    named = errors.get("data") if isinstance(errors, dict) else None
    return error_message(named[0] if named else found.get("error") or "no reason given")
