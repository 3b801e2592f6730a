"""`effort`: draw a soft effort label for each exchange from the length of its reasoning."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xxhash

from sft_toolkit.conversation import Conversation
from sft_toolkit.draws import uniform
from sft_toolkit.errors import RecordError
from sft_toolkit.labelers.effort import LEVELS, label
from sft_toolkit.shards.output import EFFORT_EDGES
from sft_toolkit.stage import Outcome, Stage
from sft_toolkit.stages.effort.edges import FittedEdges
from sft_toolkit.stages.effort.fit import REASONED, WITHOUT_REASONING, group_of
from sft_toolkit.stages.effort.lengths import LengthSource
from sft_toolkit.stages.effort.report import group_name


@dataclass(frozen=True)
class EffortStage(Stage):
    """Writes the label of an exchange on the message that opens it, and that of the last one on the record.

    Labels that the input brought along are replaced. A draw depends on seed, record id and exchange index alone.
    Raises ToolkitError where `edges` were fitted with another tokenizer than that of `lengths`.
    """

    lengths: LengthSource
    edges: FittedEdges
    seed: int = 0

    name: ClassVar[str] = "effort"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.edges.require_same_lengths(self.lengths.identity)

    @property
    def draws(self) -> bool:
        return True

    def options(self) -> dict[str, Any]:
        return {**self.facts(), "seed": self.seed}

    def facts(self) -> dict[str, Any]:
        return {"lengths": self.lengths.identity, "edges": xxhash.xxh3_64_hexdigest(self.edges.to_text().encode())}

    def side_files(self) -> dict[str, str]:
        return {EFFORT_EDGES: self.edges.to_text()}

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        measured = list(zip(batch, self.lengths.measure(batch), strict=True))
        labels = self._labels(measured, outcome)
        for conversation, lengths in measured:
            if isinstance(lengths, RecordError):
                outcome.fault(conversation, lengths)
                continue
            _write(conversation, list(itertools.islice(labels, len(lengths))), outcome)
            conversation.provenance.append(self.stamp)
            yield conversation

    def _labels(self, measured: list[tuple[Conversation, list[int] | RecordError]], outcome: Outcome) -> Iterator[str]:
        """Labels of all exchanges of the batch, one after the other."""
        rows = [
            (
                length,
                *self._edges_for(conversation, length, outcome),
                uniform(self.seed, "effort", conversation.id, index),
            )
            for conversation, lengths in measured
            if not isinstance(lengths, RecordError)
            for index, length in enumerate(lengths)
        ]
        lengths, l30, l70, uniforms = np.array(rows, float).reshape(-1, 4).T
        return (LEVELS[level] for level in label(lengths.astype(np.int64), l30, l70, uniforms))

    def _edges_for(self, conversation: Conversation, length: int, outcome: Outcome) -> tuple[float, float]:
        if length == 0:
            outcome.note(WITHOUT_REASONING)
            return np.nan, np.nan
        level, edges = self.edges.table.find(*group_of(conversation))
        outcome.note(REASONED)
        outcome.note(f"edges_of_{level}")
        outcome.note("degenerate_edges", edges.degenerate)
        return edges.l30, edges.l70


def _write(conversation: Conversation, labels: list[str], outcome: Outcome) -> None:
    group = group_name(group_of(conversation))
    for message in conversation.messages:
        message.effort = None
    for exchange, level in zip(conversation.exchanges(), labels, strict=True):
        conversation.messages[exchange.start].effort = level
        outcome.split(group, level)
    conversation.effort = labels[-1] if labels else None
    outcome.note("records_without_user_turn", not labels)
