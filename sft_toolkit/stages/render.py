"""`render`: conversations to token ids with a loss mask, one token row each (or one per exchange)."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError, UsageError
from sft_toolkit.stage import Outcome, Stage

if TYPE_CHECKING:
    import pyarrow as pa

    from sft_toolkit.chat import Rendered, Renderer

OVERLONG = ("error", "drop", "truncate")
TRAIN = ("all", "last")
DEFAULT_DATE = "2026-01-01"


@dataclass(frozen=True)
class RenderStage(Stage):
    """`tokenizer` is a folder in Hugging Face layout, `chat_template` one of its templates or a file in their place.

    `template_variables` are given to the template beside messages and tools. `tools_in_system` writes declared tools
    that a template leaves out into the system prompt. `date` (ISO) is given to a template that asks for today's date.
    A document of more than `max_tokens` tokens is an error, dropped, or truncated after its last whole trained turn
    that fits, as `overlong` says.
    Raises UsageError or ToolkitError where options, tokenizer and template do not go together.
    """

    tokenizer: str
    chat_template: str | None = None
    train: str = "all"
    train_empty_think: bool = False
    per_exchange: bool = False
    max_tokens: int | None = None
    overlong: str = "error"
    date: str = DEFAULT_DATE
    template_variables: Mapping[str, Any] = field(default_factory=dict)
    tools_in_system: bool = False

    name: ClassVar[str] = "render"

    def __post_init__(self) -> None:
        if self.overlong != "error" and self.max_tokens is None:
            raise UsageError(f"--overlong {self.overlong} needs a length", "add --max-tokens N")
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
        )

    @property
    def _today(self) -> datetime.date:
        try:
            return datetime.date.fromisoformat(self.date)
        except ValueError as fault:
            raise UsageError(f"--date {self.date}: not a date", "write it as 2026-01-31") from fault

    @property
    def schema(self) -> pa.Schema:
        from sft_toolkit.shards.schemas import TOKENS

        return TOKENS

    def options(self) -> dict[str, Any]:
        return {**super().options(), **self.facts()}

    def facts(self) -> dict[str, Any]:
        return {"tokenizer": self._renderer.tokenizer.digest, "chat_template": self._renderer.template_digest}

    def __getstate__(self) -> dict[str, Any]:
        """Workers build their own renderer: a compiled template does not pickle."""
        return {name: value for name, value in self.__dict__.items() if name != "_renderer"}

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[dict[str, Any]]:
        samples = (sample for conversation in batch for sample in self._samples(conversation, outcome))
        for sample, rendered in self._renderer.render_each(samples):
            if isinstance(rendered, RecordError):
                outcome.fault(sample, rendered)
                continue
            for note, count in rendered.notes.items():
                outcome.note(note, count)
            yield from self._row(sample, rendered, outcome)

    def _samples(self, conversation: Conversation, outcome: Outcome) -> Iterator[Conversation]:
        """The conversation, or one sample per exchange: all up to its end, with loss on that exchange alone.

        What precedes the first question (an answer that greets) belongs to the first sample.
        """
        exchanges = conversation.exchanges() if self.per_exchange else []
        if not exchanges:
            yield conversation
        for number, exchange in enumerate(exchanges):
            begin = exchange.start if number else 0
            history = [replace(message, weight=0) for message in conversation.messages[:begin]]
            own = conversation.messages[begin : exchange.stop]
            question = conversation.messages[exchange.start]
            effort = conversation.effort if exchange is exchanges[-1] else question.effort
            outcome.note("exchanges")
            yield replace(conversation, id=f"{conversation.id}#{number}", messages=[*history, *own], effort=effort)

    def _row(self, sample: Conversation, rendered: Rendered, outcome: Outcome) -> Iterator[dict[str, Any]]:
        length = len(rendered.input_ids)
        if self.max_tokens is not None and length > self.max_tokens:
            detail = f"{length} tokens, more than {self.max_tokens}"
            if self.overlong == "error":
                outcome.fault(sample, RecordError("overlong", detail, "choose with --overlong drop or truncate"))
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
