"""What a verifier says of an attempt, and what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from sft_toolkit.conversation import ToolCall

RIGHT: Final = "right"
WRONG: Final = "wrong"
NO_ANSWER: Final = "no_answer"
UNDECIDED: Final = "undecided"
VERDICTS: Final = (RIGHT, WRONG, NO_ANSWER, UNDECIDED)


@dataclass(frozen=True, slots=True)
class Attempt:
    """An answer and what it is held against. `key` is the reference as the record holds it."""

    answer: str
    key: Any
    language: str = "de"
    options: Mapping[str, str] = field(default_factory=dict)
    tool_calls: tuple[ToolCall, ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """`extracted` is what was read as the answer, as text; `why` one word; `value` is equal for equal answers."""

    verdict: str
    extracted: str | None = None
    why: str | None = None
    value: str | None = None


class Verifier(Protocol):
    """Compares one attempt with its reference."""

    @property
    def name(self) -> str: ...

    def verify(self, attempt: Attempt) -> Verdict: ...


def strongest(verdicts: list[Verdict]) -> Verdict:
    """Of the verdicts on several references, any of which would do, the one that holds."""
    order = (RIGHT, UNDECIDED, WRONG, NO_ANSWER)
    return min(verdicts, key=lambda verdict: order.index(verdict.verdict))


def references(key: Any) -> list[Any]:
    """The references of a key, of which one must be met."""
    return list(key) if isinstance(key, list) else [key]
