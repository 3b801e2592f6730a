"""`render`: conversations to token ids with a loss mask, one token row a document."""

from __future__ import annotations

import datetime
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sft_toolkit.choices import EffortMismatch, History, Overlong, TrainedTurns
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError, UsageError
from sft_toolkit.stage import Outcome, Stage
from sft_toolkit.stages.documents import Document, DocumentRules

if TYPE_CHECKING:
    import pyarrow as pa

    from sft_toolkit.chat import Rendered, Renderer
    from sft_toolkit.chat.effort_sentences import EffortSentences

DEFAULT_DATE = "2026-01-01"


@dataclass(frozen=True)
class RenderStage(Stage):
    """`tokenizer` is a folder in Hugging Face layout, `chat_template` one of its templates or a file in their place.

    `template_variables` are given to the template beside messages and tools. `tools_in_system` writes declared tools
    that a template leaves out into the system prompt. `date` (ISO) is given to a template that asks for today's date.
    `effort_sentences` is a file with what states the effort where the template does not; `effort_mismatch`, `history`
    and `per_exchange` decide which documents a record becomes, see `DocumentRules`. A document of more than
    `max_tokens` tokens is an error, dropped, or truncated after its last whole trained turn that fits, as `overlong`
    says.
    Raises UsageError or ToolkitError where options, tokenizer and template do not go together.
    """

    tokenizer: str
    chat_template: str | None = None
    train: TrainedTurns = "all"
    train_empty_think: bool = False
    per_exchange: bool = False
    max_tokens: int | None = None
    overlong: Overlong = "error"
    date: str = DEFAULT_DATE
    template_variables: Mapping[str, Any] = field(default_factory=dict)
    tools_in_system: bool = False
    effort_sentences: str | None = None
    effort_mismatch: EffortMismatch = "split"
    history: History = "keep"
    seed: int = 0

    name: ClassVar[str] = "render"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.overlong != "error" and self.max_tokens is None:
            raise UsageError(f"`overlong` {self.overlong} needs a length", "add `max_tokens=N`")
        _ = self._renderer

    @cached_property
    def _renderer(self) -> Renderer:
        from sft_toolkit.chat import Renderer

        return Renderer.from_folder(
            self.tokenizer,
            self.chat_template,
            train=self.train,
            train_empty_think=self.train_empty_think,
            today=self._today,
            variables=self.template_variables,
            tools_in_system=self.tools_in_system,
            effort_sentences=self._sentences,
        )

    @cached_property
    def _sentences(self) -> EffortSentences | None:
        from sft_toolkit.chat.effort_sentences import read_effort_sentences

        return None if self.effort_sentences is None else read_effort_sentences(Path(self.effort_sentences))

    @cached_property
    def _rules(self) -> DocumentRules:
        return DocumentRules(
            self._renderer, self.effort_mismatch, self.history, self.per_exchange, self.train == "last", self.seed
        )

    @property
    def _today(self) -> datetime.date:
        try:
            return datetime.date.fromisoformat(self.date)
        except ValueError as fault:
            raise UsageError(f"`date` {self.date}: not a date", "write it as 2026-01-31") from fault

    @property
    def schema(self) -> pa.Schema:
        from sft_toolkit.shards.schemas import TOKENS

        return TOKENS

    @property
    def draws(self) -> bool:
        return self.history == "both"

    def unique_ids(self, ids: list[str]) -> list[str]:
        """Where ID#N may be a document of ID, it must not be a record as well."""
        return ids if self.draws else [name for name in ids if "#" in name]

    def options(self) -> dict[str, Any]:
        sentences = None if self._sentences is None else asdict(self._sentences)
        options = {**super().options(), "effort_sentences": sentences, **self.facts()}
        return options if self.draws else {name: value for name, value in options.items() if name != "seed"}

    def facts(self) -> dict[str, Any]:
        return {"tokenizer": self._renderer.tokenizer.digest, "chat_template": self._renderer.template_digest}

    def __getstate__(self) -> dict[str, Any]:
        """Workers build their own renderer: a compiled template does not pickle."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_renderer", "_rules")}

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[dict[str, Any]]:
        return (row for _, row in self.rows_of_records(batch, outcome))

    def rows_of_records(
        self, batch: list[Conversation], outcome: Outcome
    ) -> Iterator[tuple[Conversation, dict[str, Any]]]:
        """The rows, each with the record that it was made of."""
        waiting: deque[tuple[Conversation, Document]] = deque()
        for sample, rendered in self._renderer.render_each(self._samples(batch, outcome, waiting)):
            record, document = waiting.popleft()
            if isinstance(rendered, RecordError):
                outcome.fault(sample, rendered)
                continue
            for note, count in rendered.notes.items():
                outcome.note(note, count)
            for row in self._row(sample, rendered, outcome):
                outcome.note("tokens_rendered_again", row["length"] if document.repeated else 0)
                yield record, row

    def _samples(
        self, batch: list[Conversation], outcome: Outcome, waiting: deque[tuple[Conversation, Document]]
    ) -> Iterator[Conversation]:
        """The conversation of each document of each record; both wait until that is rendered."""
        for conversation in batch:
            try:
                documents = self._rules.documents(conversation, outcome)
            except RecordError as error:
                outcome.fault(conversation, error)
                continue
            for document in documents:
                waiting.append((conversation, document))
                yield document.conversation

    def _row(self, sample: Conversation, rendered: Rendered, outcome: Outcome) -> Iterator[dict[str, Any]]:
        length = len(rendered.input_ids)
        if self.max_tokens is not None and length > self.max_tokens:
            detail = f"{length} tokens, more than {self.max_tokens}"
            if self.overlong == "error":
                outcome.fault(sample, RecordError("overlong", detail, "choose with `overlong` drop or truncate"))
                return
            if self.overlong == "drop":
                outcome.drop(sample, "overlong", detail)
                return
            length = _whole_turns(rendered, self.max_tokens)
            outcome.note("truncated", length > 0)
        mask = rendered.loss_mask[:length]
        loss_tokens = int(np.count_nonzero(mask))
        if loss_tokens == 0:
            outcome.drop(sample, "no_trained_tokens", "no token of it would carry loss")
            return
        yield {
            "id": sample.id,
            "dataset": sample.dataset,
            "effort": sample.effort,
            "input_ids": rendered.input_ids[:length],
            "loss_mask": mask,
            "length": length,
            "loss_tokens": loss_tokens,
        }


def _whole_turns(rendered: Rendered, max_tokens: int) -> int:
    """Tokens up to the end of the last trained turn that fits whole: what follows it would carry no loss."""
    ends = [span.token_end for span in rendered.spans if span.trained and span.tokens]
    return max((end for end in ends if end <= max_tokens), default=0)
