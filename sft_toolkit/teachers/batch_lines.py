"""Questions and replies as the lines of batch files, in the form that OpenAI's batch API made common.

A question is `{"custom_id": KEY, "method": "POST", "url": "/v1/chat/completions", "body": {…}}`, a reply
`{"custom_id": KEY, "response": {"status_code": 200, "body": {…}}, "error": null}`; KEY is the journal's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from sft_toolkit.json_text import encode
from sft_toolkit.shards.atomic import atomic_path
from sft_toolkit.teachers.bodies import decode_or_none
from sft_toolkit.teachers.journal_config import PRIVATE_FILE
from sft_toolkit.teachers.replies import error_message, is_answer
from sft_toolkit.teachers.teacher import RawReply

MOST_LINES = 50_000
MOST_BYTES = 190 << 20
"""Limits of one batch: 50,000 questions, and 200 MB with some room."""

Question = tuple[str, str, dict[str, Any]]
"""Key, path at the endpoint, body."""

_V1 = "/v1"
_KEY = re.compile(r"[0-9a-f]{32}")
_ANSWERED = 200
_FINAL = range(400, 500)
_ASKED_AGAIN = frozenset({401, 402, 403, 404, 408, 409, 425, 429})


def question_line(key: str, path: str, body: dict[str, Any]) -> bytes:
    """The line that asks what `body` asks at `path` of an endpoint."""
    return encode({"custom_id": key, "method": "POST", "url": _V1 + path, "body": body}) + b"\n"


@dataclass(frozen=True, slots=True)
class BatchFile:
    """One written file of questions; `url` is the endpoint of all of them, as a batch has one alone."""

    path: Path
    url: str
    lines: int


def write_batches(target: Path, questions: Iterable[Question]) -> list[BatchFile]:
    """Write questions to `target`, and to TARGET-2, -3, … where one file would be too large for a batch.

    A file holds questions for one endpoint. Each appears whole or not at all.
    """
    waiting = iter(questions)
    first = next(waiting, None)
    files: list[BatchFile] = []
    while first is not None:
        name = target if not files else target.with_name(f"{target.stem}-{len(files) + 1}{target.suffix}")
        with atomic_path(name) as temporary:
            temporary.touch(PRIVATE_FILE)
            with temporary.open("wb") as file:
                path, lines, following = _fill(file, first, waiting)
        files.append(BatchFile(name, _V1 + path, lines))
        first = following
    return files


def _fill(file: BinaryIO, first: Question, waiting: Iterator[Question]) -> tuple[str, int, Question | None]:
    """Write questions until the file is full: their endpoint, their number, and the one that had no room."""
    path, lines, size = first[1], 0, 0
    question: Question | None = first
    while question is not None:
        line = question_line(*question)
        if lines and (question[1] != path or lines >= MOST_LINES or size + len(line) > MOST_BYTES):
            break
        file.write(line)
        lines, size = lines + 1, size + len(line)
        question = next(waiting, None)
    return path, lines, question


def read_replies(file: Iterable[bytes]) -> Iterator[tuple[str, RawReply | None, str]]:
    """Key, final reply and what is said of each line of a file of replies; None where the question is open still.

    Passes over blank lines. A line that is none of a reply has the key "".
    """
    for line in filter(bytes.strip, file):
        entry = decode_or_none(line)
        key = entry.get("custom_id") if isinstance(entry, dict) else None
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            yield "", None, "no reply to a question of a journal"
            continue
        response = entry.get("response")
        status = response.get("status_code", _ANSWERED) if isinstance(response, dict) else None
        body = response.get("body") if isinstance(response, dict) else None
        yield key, *_final(status, body, entry.get("error"))


def _final(status: Any, body: Any, error: Any) -> tuple[RawReply | None, str]:
    if status == _ANSWERED and is_answer(body):
        return RawReply(_ANSWERED, encode(body)), ""
    said = error_message(body if body is not None else {"error": error})
    if status in _FINAL and status not in _ASKED_AGAIN:
        return RawReply(int(status), encode({"error": {"message": said}})), ""
    return None, f"HTTP {status}: {said}" if status is not None else said
