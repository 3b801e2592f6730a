"""The asking half of a run with a teacher: shake hands, claim the journal, ask what it lacks, at once or by batches."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError, ToolkitError, UsageError
from sft_toolkit.json_text import encode
from sft_toolkit.running.options import RunOptions
from sft_toolkit.running.passes import read_batches
from sft_toolkit.running.runner import check_output, output_of
from sft_toolkit.shards.ids import IdLedger
from sft_toolkit.shards.sources import Block, Source
from sft_toolkit.stage import Outcome, Stage
from sft_toolkit.teachers.asking import Asker, AskingState, is_answered
from sft_toolkit.teachers.batch_jobs import BatchAsker, take_over
from sft_toolkit.teachers.batch_lines import Question, write_batches
from sft_toolkit.teachers.journal import Journal, Replies
from sft_toolkit.teachers.journal_config import claim
from sft_toolkit.teachers.pace import Patience
from sft_toolkit.teachers.prefill import AUTO
from sft_toolkit.teachers.requests import Asking, Request
from sft_toolkit.teachers.stage import TeacherStage
from sft_toolkit.teachers.teacher import RawReply, Teacher


@dataclass(frozen=True)
class BatchOptions:
    """Questions by batches: `submits` to the endpoint and looks every `poll` seconds; or they are written to `target`,
    and `replies` are files of replies from elsewhere.
    """

    submits: bool = False
    target: Path | None = None
    replies: tuple[Path, ...] = ()
    poll: float = 60.0


@dataclass(frozen=True)
class TeacherOptions:
    """How a teacher is asked; none of it decides what is asked. `rejudge` asks nothing and reads the journal.

    `has_endpoint` is False where questions are only written down, for a teacher that `open` cannot reach.
    """

    open: Callable[[], Teacher]
    concurrency: int = 32
    patience: Patience = field(default_factory=Patience)
    price_in: float = 0.0
    price_out: float = 0.0
    rejudge: bool = False
    batch: BatchOptions = field(default_factory=BatchOptions)
    has_endpoint: bool = True


class Conductor:
    """The asking half of a run; `stage` gets the form of prefill that the teacher turned out to understand.

    `is_outgrown`: the output was made with fewer questions and is to be made anew.
    """

    def __init__(self, stage: TeacherStage, run: RunOptions, options: TeacherOptions) -> None:
        self.stage = replace(stage, part=run.part)
        self._run = run
        self._options = options
        self._teacher: Teacher | None = None
        self.is_outgrown = False
        self.state = AskingState(price_in=options.price_in, price_out=options.price_out)

    async def conduct(self, earlier: dict[str, object] | None) -> AskingState:
        try:
            await self._settle(earlier)
            earlier_limits = claim(Path(self.stage.journal), self.stage.config(), force=self._run.force)
            self._use(replace(self.stage.asking, earlier=earlier_limits))
            check_output(self._maker(earlier is not None), self._run, known=earlier is not None)
            if self._options.rejudge and not self._options.batch.replies:
                Replies.scan(Path(self.stage.journal)).save(Path(self.stage.journal), self._run.part)
            else:
                await self._ask()
        finally:
            if self._teacher is not None:
                await self._teacher.close()
        return self.state

    def _maker(self, known: bool) -> Stage:
        """The stage that made the output, where it asked less than this one; else this one."""
        if known and self._run.to_folder and not self._run.force:
            earlier = output_of(self.stage.outgrown(), self._run)
            self.is_outgrown = earlier is not None
            return earlier or self.stage
        return self.stage

    async def _settle(self, earlier: dict[str, object] | None) -> None:
        """Where earlier questions settled the form of prefill, keep it: keys depend on it."""
        if self.stage.asking.prefill == AUTO:
            if earlier is not None and not self._run.force:
                self._use(replace(self.stage.asking, prefill=str(earlier["prefill"])))
            elif self._options.rejudge:
                raise UsageError("`rejudge` with `force` needs the form of prefill", "add `prefill`")
            else:
                await self._shake_hands()

    async def _shake_hands(self) -> Teacher:
        self._teacher = self._options.open()
        self._use(await self._teacher.settle_prefill(self.stage.asking))
        return self._teacher

    def _use(self, asking: Asking) -> None:
        self.stage = replace(self.stage, asking=asking)

    async def _ask(self) -> None:
        folder, batch = Path(self.stage.journal), self._options.batch
        journal = Journal(folder, self._run.part)
        try:
            for path in batch.replies:
                with _opened(path) as lines:
                    take_over(lines, journal, self.state)
            if not self._options.rejudge:
                with tempfile.TemporaryDirectory(prefix="kolibri-sft-") as spool:
                    await self._ask_missing(journal, self._blocks(Path(spool)))
        finally:
            journal.close()

    async def _ask_missing(self, journal: Journal, blocks: list[Block]) -> None:
        self.state.all_rows = sum(block.rows for block in blocks)
        batch = self._options.batch
        if batch.target is not None:
            questions = self._questions(journal, blocks, self._teacher or await self._writer_of_questions())
            self.state.handed_over = sum(file.lines for file in write_batches(batch.target, questions))
            return
        asker = None
        if batch.submits:
            self._teacher = self._teacher or self._options.open()
            asker = self._batch_asker(journal, self._teacher)
            await asker.fetch_earlier()
        if not self._any_missing(blocks, journal.replies):
            return
        teacher = self._teacher if self._teacher and not asker else await self._shake_hands()
        if asker is not None:
            await asker.ask_all(self._questions(journal, blocks, teacher))
        else:
            await self._asker(journal, teacher).ask_all(self._requests(blocks))

    async def _writer_of_questions(self) -> Teacher:
        """Without an endpoint to shake hands with, a teacher that only writes questions."""
        if self._options.has_endpoint:
            return await self._shake_hands()
        return self._options.open()

    def _questions(self, journal: Journal, blocks: list[Block], teacher: Teacher) -> Iterator[Question]:
        """What is missing, each question once; what a chat template refuses is answered with that."""
        seen = set()
        for request in self._requests(blocks):
            key = self.stage.asking.key(request)
            if key in seen or self._is_answered(journal.replies, request):
                self.state.kept += key not in seen
                continue
            seen.add(key)
            try:
                yield key, *teacher.question(self.stage.asking, request)
            except RecordError as fault:
                journal.append(key, RawReply(400, encode({"error": {"message": fault.detail}})))

    def _blocks(self, spool: Path) -> list[Block]:
        """The blocks of this part of an array job, as the stage will see them."""
        index, count = self._run.part
        source = Source(self._run.inputs, self._run.copies, checksums=self._run.checksums)
        blocks = source.blocks(self._run.rows_per_shard, spool)
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

    def _batch_asker(self, journal: Journal, teacher: Teacher) -> BatchAsker:
        return BatchAsker(
            teacher.batches(),
            Path(self.stage.journal),
            journal,
            state=self.state,
            show=self._run.progress,
            patience=self._options.patience,
            poll=self._options.batch.poll,
        )

    def _asker(self, journal: Journal, teacher: Teacher) -> Asker:
        return Asker(
            teacher,
            self.stage.asking,
            journal,
            most=self._options.concurrency,
            patience=self._options.patience,
            state=self.state,
            show=self._run.progress,
        )

    def _requests(self, blocks: list[Block]) -> Iterator[Request]:
        for row, request in self._numbered_requests(blocks):
            self.state.rows = row
            yield request

    def _numbered_requests(self, blocks: list[Block]) -> Iterator[tuple[int, Request]]:
        for row, conversation in enumerate(conversations(blocks, self._run), 1):
            for request in self.stage.requests(conversation):
                yield row, request


def conversations(blocks: list[Block], run: RunOptions) -> Iterator[Conversation]:
    return (conversation for batch in _batches(blocks, run) for conversation in batch)


def _batches(blocks: list[Block], run: RunOptions) -> Iterator[list[Conversation]]:
    """Every record that can be read; others are rejected when the output is made, or stop the run now."""
    for block in blocks:
        yield from read_batches(block, Outcome(run.quarantine), run.reader)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as fault:
        raise ToolkitError(f"{path}: {fault.strerror}", "`batch_replies` takes a file of a batch's replies") from fault
