"""`convert`: any known format to the toolkit's records, unchanged otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from sft_toolkit.conversation import Conversation
from sft_toolkit.stage import Outcome, Stage


@dataclass(frozen=True)
class ConvertStage(Stage):
    """`dataset` names the data set of records that do not say it themselves."""

    name: ClassVar[str] = "convert"
    dataset: str | None = None

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        return self.each(batch, outcome, self._named)

    def _named(self, conversation: Conversation) -> Conversation:
        if conversation.dataset is None:
            conversation.dataset = self.dataset
        return conversation
