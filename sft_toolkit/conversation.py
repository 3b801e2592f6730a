"""The record that every stage reads and writes: a conversation of messages, with the tools that it declares.

Keys that the toolkit does not know are kept in `extra` at each level and written back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

LOSS_SPANS = "loss_spans"
"""Key of an assistant message under which stand the stretches of it that carry no loss (docs/templates.md)."""

ROLES = ("system", "developer", "user", "assistant", "tool")
EFFORTS = ("none", "low", "medium", "high")


@dataclass(slots=True)
class ToolCall:
    """One call. `arguments` is an object, or, where `problem` says why not, what the record held instead.

    `extra` and `function_extra` hold the unknown keys of the call and of the `function` object inside it.
    """

    name: str
    arguments: Any
    id: str | None = None
    problem: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    function_extra: dict[str, Any] = field(default_factory=dict)

    def to_record(self) -> dict[str, Any]:
        identity = {} if self.id is None else {"id": self.id}
        function = {"name": self.name, "arguments": self.arguments, **self.function_extra}
        return {**identity, "type": "function", "function": function, **self.extra}


@dataclass(slots=True)
class Message:
    """One message. `weight` 0 takes an assistant message out of the loss, as in OpenAI's fine-tuning format."""

    role: str
    content: str | list[dict[str, Any]] | None = None
    reasoning: str | None = None
    tool_calls: list[ToolCall] = field(default_factory=list)
    tool_call_id: str | None = None
    name: str | None = None
    weight: int | None = None
    mask_reason: str | None = None
    mask_detail: str | None = None
    effort: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The content as one string: null is empty, text parts are joined, other parts are left out."""
        if self.content is None:
            return ""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.get("text") or "" for part in self.content if part.get("type") == "text")

    @property
    def trained(self) -> bool:
        """True where the model is to learn this message."""
        return self.role == "assistant" and self.weight != 0

    def to_record(self) -> dict[str, Any]:
        record: dict[str, Any] = {"role": self.role}
        if self.reasoning is not None:
            record["reasoning"] = self.reasoning
        record["content"] = self.content
        if self.tool_calls:
            record["tool_calls"] = [call.to_record() for call in self.tool_calls]
        for key in ("tool_call_id", "name", "weight", "mask_reason", "mask_detail", "effort"):
            value = getattr(self, key)
            if value is not None:
                record[key] = value
        record.update(self.extra)
        return record


@dataclass(slots=True)
class Conversation:
    """A record. `origin` (file and line) and `notes` (what reading it had to fix) are of this run, never written."""

    id: str
    messages: list[Message]
    tools: list[dict[str, Any]] = field(default_factory=list)
    dataset: str | None = None
    domain: str | None = None
    difficulty: str | None = None
    effort: str | None = None
    provenance: list[dict[str, Any]] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    origin: str = ""
    columns: tuple[tuple[str, str], ...] = ()

    def exchanges(self) -> list[range]:
        """Message indexes per exchange: a user turn and everything up to the next user turn.

        Consecutive user messages are one turn. What stands before the first user turn belongs to no exchange.
        """
        starts = [
            index
            for index, message in enumerate(self.messages)
            if message.role == "user" and (index == 0 or self.messages[index - 1].role != "user")
        ]
        return [range(start, end) for start, end in pairwise([*starts, len(self.messages)])]

    def efforts(self) -> list[str | None]:
        """The label of each exchange: that of the message that opens it.

        The record's own stands in for a missing one of the last exchange, or, where no message has any, of all.
        """
        labels = [self.messages[exchange.start].effort for exchange in self.exchanges()]
        if not any(labels):
            return [self.effort] * len(labels)
        return [*labels[:-1], labels[-1] or self.effort]

    def to_record(self) -> dict[str, Any]:
        """The record as it is written to JSONL: known keys first, unknown ones after them."""
        record: dict[str, Any] = {"id": self.id}
        for key in ("dataset", "domain", "difficulty", "effort"):
            value = getattr(self, key)
            if value is not None:
                record[key] = value
        record["messages"] = [message.to_record() for message in self.messages]
        if self.tools:
            record["tools"] = self.tools
        if self.provenance:
            record["provenance"] = self.provenance
        record.update(self.extra)
        return record
