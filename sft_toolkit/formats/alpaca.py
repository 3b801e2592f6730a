"""Alpaca records (`instruction`, `input`, `output`, `history`) as OpenAI chat records."""

from __future__ import annotations

from typing import Any

from sft_toolkit.errors import RecordError

_MOVED = ("instruction", "input", "output", "system", "history")


def matches(record: dict[str, Any]) -> bool:
    return "messages" not in record and isinstance(record.get("instruction"), str) and "output" in record


def to_openai(record: dict[str, Any]) -> dict[str, Any]:
    """The input follows the instruction after an empty line; `history` holds earlier [question, answer] pairs.

    Raises RecordError where one of them is of another kind.
    """
    messages: list[dict[str, Any]] = []
    if record.get("system"):
        messages.append({"role": "system", "content": record["system"]})
    for pair in _history(record):
        messages.append({"role": "user", "content": pair[0]})
        messages.append({"role": "assistant", "content": pair[1]})
    messages.append({"role": "user", "content": _question(record)})
    messages.append({"role": "assistant", "content": record["output"]})
    rest = {key: value for key, value in record.items() if key not in _MOVED}
    return {**rest, "messages": messages}


def _history(record: dict[str, Any]) -> list[list[Any]]:
    history = record.get("history") or []
    if not (isinstance(history, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in history)):
        raise RecordError("bad_messages", "history is not a list of [question, answer] pairs")
    return history


def _question(record: dict[str, Any]) -> str:
    given = record.get("input") or ""
    if not isinstance(given, str):
        raise RecordError("bad_content", "input is not text")
    return "\n\n".join(part for part in (record["instruction"], given) if part)
