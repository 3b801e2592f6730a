"""`convert`: any known format to the toolkit's records, unchanged otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from sft_toolkit.conversation import Conversation
from sft_toolkit.stage import ColumnsRead, Outcome, Stage

KEPT = "kept"
"""The use of a column that nothing reads: it survives as it is."""


@dataclass(frozen=True)
class ConvertStage(Stage):
    """`dataset` names the data set of records that do not say it themselves.

    Counts, per input file, what each column was read as.
    """

    name: ClassVar[str] = "convert"
    dataset: str | None = None

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        _count_columns(batch, outcome)
        return self.each(batch, outcome, self._named)

    def _named(self, conversation: Conversation) -> Conversation:
        if conversation.dataset is None:
            conversation.dataset = self.dataset
        return conversation


def _count_columns(batch: list[Conversation], outcome: Outcome) -> None:
    alike = Counter(
        (conversation.origin.rpartition(":")[0], conversation.columns, tuple(conversation.extra))
        for conversation in batch
    )
    for (file, columns, kept), records in alike.items():
        read = outcome.counters.files.setdefault(file, ColumnsRead())
        read.records += records
        for column, use in columns:
            read.count(column, use, records)
        for column in kept:
            read.count(column, KEPT, records)
