"""Short forms for tests: a record as lines of who says what, a refusal as a person reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sft_toolkit.cli.flags import spelled
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError, UsageError
from sft_toolkit.formats import RecordReader
from sft_toolkit.formats.mapping import parse_mapping
from sft_toolkit.json_text import decode, encode_text

USER = {"role": "user", "content": "q"}
ANSWER = {"role": "assistant", "content": "a"}


def read(record: Any, *lines: str) -> list[Conversation]:
    """The conversations of a record as JSONL would give it."""
    return RecordReader(mapping=parse_mapping(lines)).read(decode(encode_text(record)))


def one(record: Any, *lines: str) -> Conversation:
    [conversation] = read(record, *lines)
    return conversation


def said(conversation: Conversation) -> list[str]:
    """`role: text` of each message, with reasoning in brackets, calls behind arrows and a 0 for what is not trained."""
    return [
        f"{message.role}: "
        + (f"({message.reasoning}) " if message.reasoning else "")
        + message.text
        + "".join(f"->{call.name}{json.dumps(call.arguments, default=str)}" for call in message.tool_calls)
        + (" [0]" if message.weight == 0 else "")
        for message in conversation.messages
    ]


def refusal(record: Any, *lines: str) -> str:
    """What a person reads where a record is refused."""
    with pytest.raises((RecordError, UsageError)) as caught:
        read(record, *lines)
    error = caught.value
    detail = error.detail if isinstance(error, RecordError) else error.message
    return spelled(f"{detail}; {error.hint}")
