"""How long the reasoning of each exchange is, in tokens: counted with a tokenizer, or read from the record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import xxhash

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError, ToolkitError, UsageError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Lengths = list[int] | RecordError
"""Tokens of reasoning per exchange of one record, 0 where there is none; or what is wrong with the record."""

Identity = dict[Literal["tokenizer", "column"], str]
"""What lengths must share to be comparable: the hash of a tokenizer, or the name of a column."""

_MOST = 2**31 - 1
_CHARACTERS_AT_ONCE = 1 << 20


class LengthSource(Protocol):
    """Where lengths come from. Picklable: workers measure."""

    @property
    def identity(self) -> Identity: ...

    def measure(self, batch: list[Conversation]) -> Iterator[Lengths]:
        """Lengths of each record of the batch, or what is wrong with it."""


@dataclass(frozen=True)
class CountedLengths:
    """Lengths counted with the tokenizer in `folder`, of reasoning alone: no template, no special tokens.

    Raises ToolkitError where the folder holds no tokenizer.json that can be read.
    """

    folder: str

    @property
    def identity(self) -> Identity:
        return {"tokenizer": xxhash.xxh3_128_hexdigest(self._text)}

    def measure(self, batch: list[Conversation]) -> Iterator[Lengths]:
        texts = [_reasoning(conversation, exchange) for conversation in batch for exchange in conversation.exchanges()]
        counts = self._count([text for exchange in texts for text in exchange])
        per_exchange = (sum(next(counts) for _ in exchange) for exchange in texts)
        for conversation in batch:
            yield [next(per_exchange) for _ in conversation.exchanges()]

    def _count(self, texts: list[str]) -> Iterator[int]:
        """Tokens of each text. Encodings take some 100 bytes a token, so only about 1M characters are held at once."""
        start, held = 0, 0
        for end, text in enumerate(texts, 1):
            held += len(text)
            if held >= _CHARACTERS_AT_ONCE or end == len(texts):
                encodings = self._tokenizer.encode_batch_fast(texts[start:end], add_special_tokens=False)
                yield from map(len, encodings)
                start, held = end, 0

    @cached_property
    def _text(self) -> bytes:
        path = Path(self.folder, "tokenizer.json")
        try:
            return path.read_bytes()
        except OSError as fault:
            raise ToolkitError(
                f"{path}: {fault.strerror}", "`tokenizer` takes a folder in Hugging Face layout, with a tokenizer.json"
            ) from fault

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        text = self._text
        try:
            tokenizer = Tokenizer.from_buffer(text)
        except Exception as fault:  # tokenizers raises no narrower class
            raise ToolkitError(f"{self.folder}/tokenizer.json: not a tokenizer: {fault}") from fault
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer


def _reasoning(conversation: Conversation, exchange: range) -> list[str]:
    """The reasoning of the exchange's assistant messages; blank reasoning is none."""
    found = (conversation.messages[index].reasoning for index in exchange)
    return [text for text in found if text and not text.isspace()]


@dataclass(frozen=True)
class GivenLengths:
    """Lengths read from the record's key `column`: a list, one number per exchange, or one number for one exchange."""

    column: str

    @property
    def identity(self) -> Identity:
        return {"column": self.column}

    def measure(self, batch: list[Conversation]) -> Iterator[Lengths]:
        for conversation in batch:
            try:
                yield self._of(conversation)
            except RecordError as error:
                yield error

    def _of(self, conversation: Conversation) -> list[int]:
        given = conversation.extra.get(self.column)
        values = given if isinstance(given, list) else [given]
        exchanges = len(conversation.exchanges())
        lengths = [self._whole(value) for value in values]
        if len(lengths) != exchanges:
            raise RecordError(
                "bad_length",
                f"{self.column} holds {len(lengths)} lengths for {exchanges} exchanges",
                "give a list with one length per user turn",
            )
        return lengths

    def _whole(self, value: Any) -> int:
        """A number of tokens as int. Raises RecordError for null, NaN, a negative, a fraction or anything else."""
        number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        if number and 0 <= value <= _MOST and value % 1 == 0:
            return int(value)
        shown = "missing or null" if value is None else f"{value!s:.40}, not a whole number of tokens"
        raise RecordError("bad_length", f"{self.column} is {shown}", "0 stands for an exchange without reasoning")


def length_source(tokenizer: Path | None, column: str | None) -> LengthSource:
    """The source that the command line names. Raises UsageError unless it names exactly one."""
    if (tokenizer is None) == (column is None):
        raise UsageError("lengths need exactly one source", "give either `tokenizer` or `length_column`")
    return GivenLengths(column) if column is not None else CountedLengths(str(tokenizer))
