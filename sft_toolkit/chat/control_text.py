"""Text of messages that looks like a control token: found before rendering, followed into the rendered text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from sft_toolkit.chat.template import Messages, Tools
from sft_toolkit.errors import RecordError

_INERT = "\U0010fffb"
ALIASES = frozenset({"thinking", "reasoning_content"})
"""Keys of a message, as templates are given it, that repeat its reasoning."""

_encode = msgspec.json.Encoder(enc_hook=str).encode

Range = tuple[int, int]
Render = Callable[[Messages, Tools], str]


class ControlText:
    """The texts of a tokenizer's control tokens. `pattern` matches any of them, the longest first."""

    def __init__(self, texts: Iterable[str]) -> None:
        longest_first = sorted(texts, key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        in_json = (re.escape(_encode(text)[1:-1]) for text in longest_first)
        self._in_json = re.compile(b"|".join(in_json) or rb"(?!)")

    def inert_ranges(self, messages: Messages, tools: Tools, render: Render, text: str) -> list[Range]:
        """Where the control tokens that messages and tools hold stand in the rendered `text`.

        The conversation is rendered once more with each of them bracketed by a private-use character, which then
        shows where they went. Raises RecordError `control_text` where the template takes such text apart.
        """
        for message in messages:
            if isinstance(message["content"], list):
                self._require_apart([part["text"] for part in message["content"]])
        if not self._held_by(messages, tools):
            return []
        bracketed = render(self._bracketed(messages), self._bracketed(tools))
        pieces = bracketed.split(_INERT)
        whole = len(pieces) % 2 == 1 and all(map(self.pattern.fullmatch, pieces[1::2]))
        if not whole or "".join(pieces) != text:
            raise RecordError(
                "control_text",
                "text of a message holds a control token that the chat template takes apart",
                "rewrite it",
            )
        ranges, position = [], 0
        for place, piece in enumerate(pieces):
            if place % 2:
                ranges.append((position, position + len(piece)))
            position += len(piece)
        return ranges

    def _require_apart(self, texts: list[str]) -> None:
        """No control token may lie across content parts, which a template may well write one right after the other."""
        if len(self.pattern.findall("".join(texts))) > sum(len(self.pattern.findall(text)) for text in texts):
            raise RecordError("control_text", "content parts of a message together spell a control token", "rewrite it")

    def _held_by(self, messages: Messages, tools: Tools) -> bool:
        """Whether any text of theirs holds a control token: one search in all of it, encoded as JSON."""
        values = [[value for key, value in message.items() if key not in ALIASES] for message in messages]
        return self._in_json.search(_encode([values, tools])) is not None

    def _bracketed(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.pattern.sub(rf"{_INERT}\g<0>{_INERT}", value)
        if isinstance(value, dict):
            return {self._bracketed(key): self._bracketed(item) for key, item in value.items()}
        return [self._bracketed(item) for item in value] if isinstance(value, list) else value
