"""`grade collect`: labels of difficulty for a student to learn from, out of a column or from a teacher."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError
from sft_toolkit.stage import Outcome, Stage
from sft_toolkit.stages.grade.labels import DEFAULT_LEVELS, LabelColumn, label, prompt_text
from sft_toolkit.stages.grade.rubric import Examples, messages
from sft_toolkit.teachers.replies import Reply
from sft_toolkit.teachers.requests import Request
from sft_toolkit.teachers.stage import TeacherStage


@dataclass(frozen=True)
class ColumnLabels(Stage):
    """Takes labels from a column; records without one are left out."""

    column: LabelColumn

    name: ClassVar[str] = "grade collect"

    def options(self) -> dict[str, Any]:
        return {"column": self.column.name, "levels": self.column.levels}

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        for conversation in batch:
            try:
                prompt_text(conversation)
                votes = self.column.votes(conversation)
            except RecordError as error:
                outcome.fault(conversation, error)
                continue
            if votes:
                yield _labelled(self, conversation, votes, self.column.levels, outcome)
            else:
                outcome.drop(conversation, "unlabelled", f"no label under {self.column.name}")


@dataclass(frozen=True)
class TeacherLabels(TeacherStage):
    """Asks a teacher `votes` times for the level of each prompt, by a rubric; the median of the votes is the label."""

    rubric: str
    examples: Examples = ()
    levels: tuple[str, ...] = DEFAULT_LEVELS
    votes: int = 1

    name: ClassVar[str] = "grade collect"

    def requests(self, conversation: Conversation) -> Iterator[Request]:
        """One question per vote; none for a record without a prompt."""
        try:
            prompt = prompt_text(conversation)
        except RecordError:
            return
        asked = messages(prompt, self.rubric, self.examples)
        for vote in range(self.votes):
            yield Request(asked, vote, record=conversation.id)

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        for conversation in batch:
            try:
                prompt_text(conversation)
            except RecordError as error:
                outcome.fault(conversation, error)
                continue
            votes = self._votes(conversation, outcome)
            if votes:
                yield _labelled(self, conversation, votes, self.levels, outcome)
            else:
                outcome.drop(conversation, "no_vote", "no reply of the teacher names a level")

    def _votes(self, conversation: Conversation, outcome: Outcome) -> list[str]:
        found = [read_vote(self.reply(request), self.levels) for request in self.requests(conversation)]
        votes = [vote for vote in found if vote is not None]
        outcome.note("votes", len(votes))
        outcome.note("replies_without_a_level", len(found) - len(votes))
        return votes


def read_vote(reply: Reply | None, levels: Sequence[str]) -> str | None:
    """The level that a reply names last, in letters of any case; None where it names none."""
    if reply is None or reply.refusal is not None:
        return None
    by_text = {level.casefold(): level for level in levels}
    longest_first = sorted(by_text, key=len, reverse=True)
    pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)"
    named = re.findall(pattern, reply.content.casefold())
    return by_text[named[-1]] if named else None


def _labelled(
    stage: Stage, conversation: Conversation, votes: list[str], levels: Sequence[str], outcome: Outcome
) -> Conversation:
    label(conversation, votes, levels)
    outcome.split(conversation.dataset or "-", str(conversation.difficulty))
    outcome.note("votes_not_unanimous", len(set(votes)) > 1)
    conversation.provenance.append(stage.stamp)
    return conversation
