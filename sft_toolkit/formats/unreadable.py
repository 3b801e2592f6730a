"""Shapes that no line of a mapping brings in whole, refused by name: trees, rendered text, tokens, turns as keys."""

from __future__ import annotations

import re
from typing import Any

from sft_toolkit.errors import RecordError
from sft_toolkit.formats.columns import Columns
from sft_toolkit.formats.paths import opened

_TURN_KEY = re.compile(r"(?:turn|round)?[_ -]?\d+", re.IGNORECASE)
_TOKENS = ("input_ids", "token_ids", "tokens", "labels")
_PARENTS = ("parent_id", "parent", "parentid")
_DEPTH = 3


def special_refusal(columns: Columns) -> RecordError | None:
    """The refusal that says what the record is instead of a conversation; None where nothing says so."""
    record = {name: opened(value) for name, value in columns.held().items()}
    parent = next((columns.layout.by_fold[fold] for fold in _PARENTS if fold in columns.layout.by_fold), None)
    if parent is not None:
        detail = f"{parent}: each row is one message of a tree over rows"
        return _refusal(detail, "join the rows of a path first", "tree_over_rows")
    if "segments" in record and isinstance(record["segments"], list):
        detail = "segments hold text that is rendered already, in pieces"
        return _refusal(detail, "give the messages that it was made from", "rendered_text")
    tokens = next((name for name in _TOKENS if _numbers(record.get(name))), None)
    if tokens is not None:
        return _refusal(f"{tokens} holds tokens, not text", "give the records they were made from", "tokens")
    for name, value in record.items():
        if _has_replies(value, 0):
            return _refusal(f"{name} is a tree of replies", "map one path through it, or join its messages first")
        if isinstance(value, dict) and value and all(_TURN_KEY.fullmatch(key) for key in value):
            return _refusal(f"{name} has its turns as keys", "bring them into a list of messages first")
    return None


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, int) for item in value)


def _has_replies(value: Any, depth: int) -> bool:
    if depth > _DEPTH:
        return False
    if isinstance(value, list):
        return any(_has_replies(item, depth + 1) for item in value[:4])
    if not isinstance(value, dict):
        return False
    return "replies" in value or any(_has_replies(inner, depth + 1) for inner in value.values())


def _refusal(detail: str, hint: str, reason: str = "not_a_conversation") -> RecordError:
    return RecordError(reason, detail, hint)
