"""What a teacher is, and how it can fail to answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sft_toolkit.errors import ToolkitError
from sft_toolkit.teachers.requests import Asking, Request


@dataclass(frozen=True, slots=True)
class RawReply:
    """What came back, as it came: the HTTP status and the body."""

    status: int
    body: bytes


class Teacher(Protocol):
    """A model that answers. `at_once` is how many questions it can work on at a time, None where that is not known."""

    at_once: int | None

    async def settle_prefill(self, asking: Asking) -> Asking:
        """Settle how an opener is sent, where `asking` says auto, and verify that it lands inside open thinking.

        Raises ToolkitError where it does not.
        """

    async def ask(self, asking: Asking, request: Request) -> RawReply:
        """A reply that is final: an answer, or the teacher's refusal of this very question.

        Raises Busy, Unreachable or Faulty where asking again may help, and ToolkitError where nothing will.
        """

    def question(self, asking: Asking, request: Request) -> tuple[str, dict[str, Any]]:
        """Path and body that ask `request` of an endpoint.

        Raises RecordError where the chat template refuses its conversation, UsageError where there is no endpoint.
        """

    def batches(self) -> BatchEndpoint:
        """The batch API of the endpoint. Raises UsageError where there is none."""

    async def close(self) -> None:
        """Let go of connections or weights."""


class BatchEndpoint(Protocol):
    """An endpoint with /files and /batches. Each call raises Setback where trying again may help, else ToolkitError."""

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """A decoded answer."""

    async def upload(self, path: Path) -> str:
        """The id of the uploaded file of questions."""

    async def content(self, file_id: str) -> bytes:
        """What a file holds."""


class NotThere(ToolkitError):
    """The endpoint knows no such path or model; asked in another form it may answer."""


class Setback(Exception):
    """A question that was not answered this time. `body` is what came all the same with status 200, and may be paid."""

    def __init__(self, detail: str, body: bytes = b"") -> None:
        super().__init__(detail)
        self.body = body


class Busy(Setback):
    """The teacher asks for patience (429): nobody's fault. `wait` is how many seconds it asked for, if it said."""

    def __init__(self, detail: str, wait: float | None = None, body: bytes = b"") -> None:
        super().__init__(detail, body)
        self.wait = wait


class Unreachable(Setback):
    """No connection: the question was not even heard."""


class Faulty(Setback):
    """An error, a time-out or a broken reply, which may lie in the question: counts as an attempt."""
