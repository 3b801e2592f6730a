"""Reading others' records: mapping, shapes, messages, tools and labels, each rule in a table of its own.

`RecordReader.read` is the door; `parse_record` reads one record that gives one conversation.
More than 20 modules, because each table of rules is one; dialects/ has one a dialect.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sft_toolkit.conversation import Conversation
from sft_toolkit.formats.reader import FORMATS, RecordReader

__all__ = ["FORMATS", "RecordReader", "parse_record"]


def parse_record(record: Any, source_format: str = "auto") -> Conversation:
    """Read one decoded record without a mapping. Raises RecordError as `RecordReader.read` does."""
    return _reader(source_format).read(record)[0]


@cache
def _reader(source_format: str) -> RecordReader:
    return RecordReader(source_format)
