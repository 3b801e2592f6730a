"""Messages under way: what a mapping says of their keys, and what is known of each before its dialects are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sft_toolkit.conversation import Message
from sft_toolkit.formats.loss_flags import FlagNames

ROLE_KEYS = ("role", "from")
CONTENT_KEYS = ("content", "value", "parts")
SOURCE = "source_"
"""Begins the name of what is kept unread though its own name says that it is read."""


@dataclass(frozen=True)
class MessageForm:
    """Under which keys of a message speaker, text and flags stand, and the names of speakers that a mapping adds."""

    role_keys: tuple[str, ...] = ROLE_KEYS
    content_keys: tuple[str, ...] = CONTENT_KEYS
    speakers: dict[str, str] = field(default_factory=dict)
    flags: FlagNames = field(default_factory=FlagNames)
    reads_effort: bool = True

    @cached_property
    def is_standard(self) -> bool:
        """True where a message in the toolkit's own form is what it seems."""
        return (
            (self.role_keys, self.content_keys) == (ROLE_KEYS, CONTENT_KEYS)
            and not self.speakers
            and self.flags.is_standard
            and self.reads_effort
        )

    @cached_property
    def kept_aside(self) -> frozenset[str]:
        """Keys that would be read again under their own name, so that what is left of them gets another."""
        return frozenset({*self.role_keys, *self.content_keys, *ROLE_KEYS, *CONTENT_KEYS})


@dataclass(slots=True)
class Turn:
    """A message under way. `at` is the index of what it was read from, `given`; `kind` its speaker's part.

    `functions` are the tools that a system message declares.
    """

    message: Message
    kind: str
    at: int
    given: dict[str, Any]
    functions: Any = None

    @property
    def is_assistants(self) -> bool:
        return self.message.role == "assistant"


def carries_text(value: Any) -> bool:
    """Whether there is text somewhere in a value."""
    if isinstance(value, str):
        return bool(value) and not value.isspace()
    if isinstance(value, dict):
        return any(carries_text(inner) for inner in value.values())
    return isinstance(value, list) and any(carries_text(inner) for inner in value)
