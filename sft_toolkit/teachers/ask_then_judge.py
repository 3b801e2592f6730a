"""A run with a teacher: ask what the journal lacks, then make the output from the journal alone."""

from __future__ import annotations

import asyncio
import signal
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import UsageError
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.passes import read_batches, readable_twice
from sft_toolkit.running.runner import check_output, forget_output, require_output, run_stage
from sft_toolkit.shards.ids import IdLedger
from sft_toolkit.shards.sources import Block, Source
from sft_toolkit.stage import Counters, Outcome
from sft_toolkit.teachers.asking import Asker, AskingState, is_answered
from sft_toolkit.teachers.journal import Journal, Replies
from sft_toolkit.teachers.journal_config import claim, read_config
from sft_toolkit.teachers.pace import Patience
from sft_toolkit.teachers.prefill import AUTO
from sft_toolkit.teachers.requests import Asking, Request
from sft_toolkit.teachers.stage import TeacherStage
from sft_toolkit.teachers.teacher import Teacher


@dataclass(frozen=True)
class TeacherOptions:
    """How a teacher is asked; none of it decides what is asked. `rejudge` asks nothing and reads the journal."""

    open: Callable[[], Teacher]
    concurrency: int = 32
    patience: Patience = field(default_factory=Patience)
    price_in: float = 0.0
    price_out: float = 0.0
    rejudge: bool = False


def run_with_teacher(stage: TeacherStage, run: RunOptions, options: TeacherOptions) -> Summary:
    """Ask, then judge. Raises TryAgain where the teacher went away: what it answered is in the journal.

    The output is made anew whenever the journal has grown, and resumed where it has not.
    """
    begun = time.monotonic()
    with readable_twice(run) as run:
        if run.dry_run:
            return _dry_run(stage, run)
        journal = Path(stage.journal)
        earlier = _require_config(journal) if options.rejudge else read_config(journal)
        require_output(run, known=earlier is not None)
        conductor = _Conductor(stage, run, options)
        state = _run_until_terminated(conductor.conduct(earlier))
        summary = run_stage(conductor.stage, _judging(conductor.stage, run, grown=state.answered > 0))
    summary.seconds = time.monotonic() - begun
    summary.facts["teacher"] = {**state.to_json(), "prefill": conductor.stage.asking.prefill}
    return summary


def kept_asking(journal: Path) -> Asking:
    """What the earlier run that filled the journal asked with. Raises UsageError or ToolkitError where none did."""
    config = _require_config(journal)
    left_out = tuple(config.get("left_out", ()))
    return Asking(config["model"], config["prefill"], config["parameters"], config["seed"], left_out)


def _require_config(journal: Path) -> dict[str, Any]:
    config = read_config(journal)
    if config is None:
        raise UsageError(f"{journal}: no journal", "--rejudge reads the replies of an earlier run")
    return config


def _run_until_terminated(work: Coroutine[Any, Any, AskingState]) -> AskingState:
    """Run to the end, or to SIGTERM: the work is then cancelled in good order before the signal takes its course."""
    handler = signal.getsignal(signal.SIGTERM)
    terminated = False

    async def cancellable() -> AskingState:
        task = asyncio.current_task()

        def cancel() -> None:
            nonlocal terminated
            terminated = True
            if task is not None:
                task.cancel()

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, cancel)
        return await work

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        if not terminated:
            raise
    finally:
        signal.signal(signal.SIGTERM, handler)
    signal.raise_signal(signal.SIGTERM)
    raise AssertionError("unreachable: the signal ends the run")


def default_journal(output: str) -> Path:
    """Where the journal lies unless the user says otherwise: beside the output."""
    if output == "-":
        raise UsageError("output to stdout needs a place for the replies", "name it with --journal DIR")
    return Path(output.rstrip("/") + ".journal")


def _judging(stage: TeacherStage, run: RunOptions, grown: bool) -> RunOptions:
    """The run, to resume the checked output; what an earlier one made of a smaller journal is made anew."""
    if not run.to_folder:
        return run
    if not Source(run.inputs).repeatable:
        return replace(run, force=True)
    if grown:
        forget_output(stage, run)
    return replace(run, force=False, resume=True)


class _Conductor:
    """The asking half of a run; `stage` gets the form of prefill that the teacher turned out to understand."""

    def __init__(self, stage: TeacherStage, run: RunOptions, options: TeacherOptions) -> None:
        self.stage = replace(stage, part=run.part)
        self._run = run
        self._options = options
        self._teacher: Teacher | None = None
        self._state = AskingState(price_in=options.price_in, price_out=options.price_out)

    async def conduct(self, earlier: dict[str, object] | None) -> AskingState:
        try:
            await self._settle(earlier)
            earlier_limits = claim(Path(self.stage.journal), self.stage.config(), force=self._run.force)
            self._use(replace(self.stage.asking, earlier=earlier_limits))
            check_output(self.stage, self._run, known=earlier is not None)
            if self._options.rejudge:
                Replies.scan(Path(self.stage.journal)).save(Path(self.stage.journal), self._run.part)
            else:
                await self._ask()
        finally:
            if self._teacher is not None:
                await self._teacher.close()
        return self._state

    async def _settle(self, earlier: dict[str, object] | None) -> None:
        """Where earlier questions settled the form of prefill, keep it: keys depend on it."""
        if self.stage.asking.prefill == AUTO:
            if earlier is not None and not self._run.force:
                self._use(replace(self.stage.asking, prefill=str(earlier["prefill"])))
            elif self._options.rejudge:
                raise UsageError("--rejudge with --force needs the form of prefill", "add --prefill")
            else:
                await self._shake_hands()

    async def _shake_hands(self) -> None:
        self._teacher = self._options.open()
        self._use(await self._teacher.settle_prefill(self.stage.asking))

    def _use(self, asking: Asking) -> None:
        self.stage = replace(self.stage, asking=asking)

    async def _ask(self) -> None:
        journal = Journal(Path(self.stage.journal), self._run.part)
        try:
            with tempfile.TemporaryDirectory(prefix="kolibri-sft-") as spool:
                blocks = self._blocks(Path(spool))
                self._state.all_rows = sum(block.rows for block in blocks)
                if self._any_missing(blocks, journal.replies):
                    if self._teacher is None:
                        await self._shake_hands()
                    await self._asker(journal).ask_all(self._requests(blocks))
        finally:
            journal.close()

    def _blocks(self, spool: Path) -> list[Block]:
        """The blocks of this part of an array job, as the stage will see them."""
        index, count = self._run.part
        blocks = Source(self._run.inputs, self._run.stdin_copy).blocks(self._run.rows_per_shard, spool)
        return [block for block in blocks if block.index % count == index]

    def _any_missing(self, blocks: list[Block], replies: Replies) -> bool:
        """Whether a question is unanswered. Raises ToolkitError for an id that occurs twice, before it is paid for."""
        ledger, missing = IdLedger(), False
        for batch in _batches(blocks, self._run):
            if self.stage.draws:
                ledger.add([conversation.id for conversation in batch])
            requests = (request for conversation in batch for request in self.stage.requests(conversation))
            missing = missing or any(not self._is_answered(replies, request) for request in requests)
        return missing

    def _is_answered(self, replies: Replies, request: Request) -> bool:
        return is_answered(replies, self.stage.asking, request, self.stage.asking.key(request))

    def _asker(self, journal: Journal) -> Asker:
        assert self._teacher is not None
        return Asker(
            self._teacher,
            self.stage.asking,
            journal,
            most=self._options.concurrency,
            patience=self._options.patience,
            state=self._state,
            show=self._run.progress,
        )

    def _requests(self, blocks: list[Block]) -> Iterator[Request]:
        for row, request in self._numbered_requests(blocks):
            self._state.rows = row
            yield request

    def _numbered_requests(self, blocks: list[Block]) -> Iterator[tuple[int, Request]]:
        for row, conversation in enumerate(_conversations(blocks, self._run), 1):
            for request in self.stage.requests(conversation):
                yield row, request


def _conversations(blocks: list[Block], run: RunOptions) -> Iterator[Conversation]:
    return (conversation for batch in _batches(blocks, run) for conversation in batch)


def _batches(blocks: list[Block], run: RunOptions) -> Iterator[list[Conversation]]:
    """Every record that can be read; others are rejected when the output is made, or stop the run now."""
    for block in blocks:
        yield from read_batches(block, Outcome(run.quarantine), run.reader)


def _dry_run(stage: TeacherStage, run: RunOptions) -> Summary:
    """Count the questions of the input and ask none."""
    begun = time.monotonic()
    counters = Counters()
    with tempfile.TemporaryDirectory(prefix="kolibri-sft-") as spool:
        blocks = list(Source(run.inputs, run.stdin_copy).blocks(run.rows_per_shard, Path(spool)))
        for conversation in _conversations(blocks, run):
            counters.records_in += 1
            counters.notes["questions"] += sum(1 for _ in stage.requests(conversation))
    return Summary(f"{stage.name} (dry run)", "nothing", counters, time.monotonic() - begun)
