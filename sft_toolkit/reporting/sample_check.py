"""What becomes of a sample of records when one template renders them: the documents that `render` makes by default."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sft_toolkit.chat import Renderer
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError
from sft_toolkit.formats import RecordReader
from sft_toolkit.reporting.findings import Finding, Level
from sft_toolkit.shards.sources import Source
from sft_toolkit.stage import Outcome
from sft_toolkit.stages.documents import DocumentRules

_ROWS_AT_ONCE = 1024
_PER_EXCHANGE = "`render(per_exchange=True)` trains every exchange as inference would show it"
_NOTES: dict[str, tuple[Level, str]] = {
    "dropped_reasoning": ("warning", _PER_EXCHANGE),
    "effort_not_rendered": ("warning", "`effort_sentences` states what a template does not"),
    "effort_of_record_differs": ("warning", "the labels of exchanges count, not the record's"),
    "effort_split": ("ok", "records of several efforts become a document for each: kolibri-sft inspect shows them"),
    "history_stop_left_out": ("warning", _PER_EXCHANGE),
    "reasoning_not_rendered": ("warning", "choose a template that writes reasoning"),
    "straddling_tokens": ("warning", "such a token carries loss only where its first character does"),
    "tools_not_rendered": ("warning", "`render(tools_in_system=True)` writes them into the system prompt"),
    "turns_without_header": ("warning", "look at one with kolibri-sft inspect"),
    "turns_without_stop": (
        "error",
        "no token ends them: the model would not learn to stop there",
    ),
}


@dataclass(slots=True)
class SampleCounts:
    """`documents` are what the records become, `without_loss` those of them that are left out.

    `faults` and `first_fault` by reason: how many records or documents, and the error message of the first.
    """

    records: int = 0
    documents: int = 0
    tokens: int = 0
    loss_tokens: int = 0
    without_loss: int = 0
    notes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    first_fault: dict[str, RecordError] = field(default_factory=dict)

    def fault(self, origin: str, error: RecordError) -> None:
        self.faults[error.reason] += 1
        self.first_fault.setdefault(error.reason, RecordError(error.reason, f"{origin}: {error.detail}", error.hint))

    def to_json(self) -> dict[str, Any]:
        names = ("records", "documents", "tokens", "loss_tokens", "without_loss", "notes", "faults")
        return {name: getattr(self, name) for name in names}


def count_sample(inputs: list[str], renderer: Renderer, reader: RecordReader) -> SampleCounts:
    """Render all records of the inputs, as `reader` reads them. Raises UsageError or ToolkitError for bad inputs."""
    counts = SampleCounts()
    conversations = _conversations(inputs, counts, reader)
    for conversation, rendered in renderer.render_each(_documents(conversations, renderer, counts)):
        if isinstance(rendered, RecordError):
            counts.fault(conversation.origin, rendered)
            continue
        counts.documents += 1
        counts.tokens += len(rendered.input_ids)
        counts.loss_tokens += rendered.loss_tokens
        counts.without_loss += rendered.loss_tokens == 0
        counts.notes.update(rendered.notes)
    return counts


def sample_findings(counts: SampleCounts) -> list[Finding]:
    share = counts.loss_tokens / counts.tokens if counts.tokens else 0.0
    split = counts.notes["effort_split"]
    became = f" in {counts.documents:,} documents" if split else ""
    said = f"{counts.records:,} records{became}, {counts.tokens:,} tokens, {share:.1%} of them with loss"
    findings = [Finding("ok" if counts.records else "warning", "sample", said)]
    for reason, count in sorted(counts.faults.items()):
        first = counts.first_fault[reason]
        findings.append(Finding("error", "sample", f"{reason}: {count:,}, first {first.detail}", first.hint))
    if counts.without_loss:
        said = f"{'documents' if split else 'records'} without a token that carries loss: {counts.without_loss:,}"
        findings.append(Finding("warning", "sample", said, "render rejects them"))
    for note, count in sorted(counts.notes.items()):
        level, advice = _NOTES.get(note, ("ok", ""))
        findings.append(Finding(level, "sample", f"{note}: {count:,}", advice))
    return findings


def _documents(
    conversations: Iterator[Conversation], renderer: Renderer, counts: SampleCounts
) -> Iterator[Conversation]:
    """A record of several efforts becomes several documents."""
    rules, outcome = DocumentRules(renderer), Outcome(quarantine=True)
    for conversation in conversations:
        try:
            documents = rules.documents(conversation, outcome)
        except RecordError as error:
            counts.fault(conversation.origin, error)
            continue
        for document in documents:
            yield document.conversation
    counts.notes.update(outcome.counters.notes)


def _conversations(inputs: list[str], counts: SampleCounts, reader: RecordReader) -> Iterator[Conversation]:
    with tempfile.TemporaryDirectory(prefix="kolibri-sft-") as spool:
        for block in Source(inputs).blocks(_ROWS_AT_ONCE, Path(spool)):
            for row in block.read():
                counts.records += 1
                try:
                    if row.error is not None:
                        raise row.error
                    conversations = reader.read(row.record, row.padded)
                except RecordError as error:
                    counts.fault(row.origin, error)
                    continue
                for conversation in conversations:
                    conversation.origin = row.origin
                    yield conversation
            block.discard()
