"""Conversations as material of a mixture, and how long they are in tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from sft_toolkit.conversation import Conversation
from sft_toolkit.draws import keys
from sft_toolkit.errors import RecordError
from sft_toolkit.json_text import encode
from sft_toolkit.running.passes import read_batches
from sft_toolkit.running.row_reader import RowReader
from sft_toolkit.shards.schemas import RECORDS
from sft_toolkit.shards.sources import Block
from sft_toolkit.stage import Outcome
from sft_toolkit.stages.mix.choice import FAULTY, NOTE, UNKNOWN
from sft_toolkit.stages.mix.material import BlockNotes, FoundRow, Placing, caps_prompts
from sft_toolkit.stages.mix.mixture_file import Mixture
from sft_toolkit.stages.render import RenderStage


class Measure(Protocol):
    """Tokens of records. Picklable."""

    @property
    def identity(self) -> dict[str, str]: ...

    def lengths(self, batch: list[Conversation], outcome: Outcome) -> dict[str, dict[str, int]]:
        """By id, `length` and what else was counted; records that have none are reported to `outcome`."""


@dataclass(frozen=True)
class RenderedLengths:
    """Lengths that `render` would give: of a record that becomes several documents, their sum."""

    render: RenderStage

    @property
    def identity(self) -> dict[str, str]:
        return dict(self.render.facts())

    def lengths(self, batch: list[Conversation], outcome: Outcome) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for record, row in self.render.rows_of_records(batch, outcome):
            counted = found.setdefault(record.id, {"length": 0, "loss_tokens": 0})
            for name in counted:
                counted[name] += row[name]
        return found


@dataclass(frozen=True)
class GivenLengths:
    """Lengths that records hold under the key `column`."""

    column: str

    @property
    def identity(self) -> dict[str, str]:
        return {"column": self.column}

    def lengths(self, batch: list[Conversation], outcome: Outcome) -> dict[str, dict[str, int]]:
        found = {}
        for conversation in batch:
            value = conversation.extra.get(self.column)
            if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**31:
                found[conversation.id] = {"length": value}
            else:
                detail = f"{self.column} is {value!s:.40}, not a number of tokens"
                outcome.fault(conversation, RecordError("bad_length", detail, "give a whole number above 0"))
        return found


@dataclass(frozen=True)
class RecordRows:
    """Conversations. The prompt of one is what stands before its first assistant message."""

    mixture: Mixture
    seed: int
    measure: Measure
    reader: RowReader
    stamp: dict[str, Any]

    @property
    def schema(self) -> pa.Schema:
        return RECORDS

    @property
    def identity(self) -> dict[str, str]:
        return self.measure.identity

    def note(self, block: Block, quarantine: bool) -> BlockNotes:
        outcome = Outcome(quarantine)
        parts = [np.empty(0, NOTE)]
        ids: list[str] = []
        datasets: set[str] = set()
        for batch in read_batches(block, outcome, self.reader):
            parts.append(self._note(batch, outcome))
            ids.extend(conversation.id for conversation in batch)
            datasets.update(conversation.dataset or "" for conversation in batch)
        return BlockNotes(np.concatenate(parts), ids, datasets, outcome)

    def _note(self, batch: list[Conversation], outcome: Outcome) -> NDArray[np.void]:
        notes = np.zeros(len(batch), NOTE)
        measured = self.measure.lengths(batch, outcome)
        for row, conversation in enumerate(batch):
            counted = measured.get(conversation.id)
            notes[row]["ingredient"] = FAULTY if counted is None else self._place_of(conversation, counted)
            notes[row]["length"] = counted["length"] if counted else 0
            notes[row]["loss_tokens"] = counted.get("loss_tokens", UNKNOWN) if counted else 0
        notes["key"] = keys(self.seed, [conversation.id for conversation in batch], "mix")
        if caps_prompts(self.mixture):
            notes["prompt"] = [_prompt_hash(conversation) for conversation in batch]
        return notes

    def _place_of(self, conversation: Conversation, counted: dict[str, int]) -> int:
        def value_of(column: str) -> Any:
            if column in counted:
                return counted[column]
            return conversation.extra.get(column, getattr(conversation, column, None))

        return self._place(conversation.dataset, value_of)

    def take(self, block: Block, wanted: NDArray[np.bool_]) -> Iterator[FoundRow]:
        start = 0
        for batch in read_batches(block, Outcome(quarantine=True), self.reader):
            for row in np.flatnonzero(wanted[start : start + len(batch)]).tolist():
                batch[row].provenance.append(self.stamp)
                yield batch[row], batch[row].origin
            start += len(batch)

    @cached_property
    def _place(self) -> Placing:
        return Placing(self.mixture)


def _prompt_hash(conversation: Conversation) -> int:
    messages = conversation.messages
    end = next((index for index, message in enumerate(messages) if message.role == "assistant"), len(messages))
    return xxhash.xxh3_64_intdigest(encode([[message.role, message.content] for message in messages[:end]]))
