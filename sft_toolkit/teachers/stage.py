"""What stages with a teacher share: questions that follow from the record, replies that come from the journal."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from sft_toolkit.conversation import Conversation
from sft_toolkit.stage import Stage
from sft_toolkit.teachers.journal import Replies
from sft_toolkit.teachers.replies import Reply, read_reply
from sft_toolkit.teachers.requests import Asking, Request


@dataclass(frozen=True)
class TeacherStage(Stage):
    """A stage whose results are a pure function of records and journal; asking has happened before it runs."""

    asking: Asking
    journal: str
    part: tuple[int, int] = field(default=(0, 1), kw_only=True)

    @abstractmethod
    def requests(self, conversation: Conversation) -> Iterator[Request]:
        """The questions that the record asks of the teacher."""

    def outgrown(self) -> Iterator[TeacherStage]:
        """The stage where it asks less and does all else alike: such output may be made anew from the journal."""
        return iter(())

    def reply(self, request: Request) -> Reply | None:
        """The teacher's reply, None where the question was given up."""
        raw = self._replies.answer(self.asking, request, even_cut=True)
        return None if raw is None else read_reply(raw, request.opener, self.asking.prefill)

    def config(self) -> dict[str, Any]:
        """What the questions of a run share; a journal is for one such configuration."""
        return {"stage": self.name, **self.asking.to_json()}

    def options(self) -> dict[str, Any]:
        """Where the journal lies and which part of a job this is decide nothing; nor does a limit of length.

        What a higher limit changes are replies, and the output is made anew whenever there are new ones.
        """
        others = {option.name: getattr(self, option.name) for option in fields(self) if option.name not in _NOT_PLAIN}
        return {**others, "asking": self.asking.limited_by({}).to_json()}

    @property
    def random_seed(self) -> int:
        return self.asking.seed

    @cached_property
    def _replies(self) -> Replies:
        return Replies.load(Path(self.journal), self.part)


_NOT_PLAIN = ("journal", "part", "asking")
