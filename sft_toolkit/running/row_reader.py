"""Rows as conversations: what becomes of those that cannot be read, and of those that occur again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sft_toolkit.choices import Duplicates
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError
from sft_toolkit.formats import RecordReader
from sft_toolkit.running.meter import Meter
from sft_toolkit.shards.segments import Row
from sft_toolkit.stage import Outcome

Repeats = Mapping[tuple[str, int], int]
"""Of each record that occurs again: where it stands (row, number within the row), and how often it did before."""


@dataclass(frozen=True)
class RowReader:
    """Reads rows with `records`; `repeats` are the records that, under `duplicates`, are dropped or numbered.

    `meter` counts the rows that were processed. Under "error" nothing is done here: who draws by ids refuses them.
    """

    records: RecordReader = field(default_factory=RecordReader)
    duplicates: Duplicates = "error"
    repeats: Repeats = field(default_factory=dict)
    meter: Meter = field(default_factory=Meter, compare=False)

    def to_json(self) -> dict[str, Any]:
        """What decides how rows are read, for pinned options."""
        return {**self.records.to_json(), "duplicates": self.duplicates}

    def read(self, row: Row, outcome: Outcome) -> list[Conversation]:
        """The conversations of a row; one that cannot be read is reported to `outcome`."""
        try:
            if row.error is not None:
                raise row.error
            conversations = self.records.read(row.record, row.padded)
        except RecordError as error:
            outcome.unreadable(row.origin, error, row.record)
            return []
        for conversation in conversations:
            conversation.origin = row.origin
            for note in conversation.notes:
                outcome.note(note)
        return self._without_repeats(conversations, outcome) if self.repeats else conversations

    def _without_repeats(self, conversations: list[Conversation], outcome: Outcome) -> list[Conversation]:
        kept = []
        for number, conversation in enumerate(conversations):
            before = self.repeats.get((conversation.origin, number))
            if before is not None and self.duplicates == "drop":
                outcome.drop(conversation, "duplicate", f"the record {conversation.id} occurs before")
                continue
            if before is not None:
                conversation.id = f"{conversation.id}#{before}"
                outcome.note("duplicates_numbered")
            kept.append(conversation)
        return kept
