"""Alpaca records (`instruction`, `input`, `output`, `history`) as OpenAI chat records."""

from __future__ import annotations

from typing import Any

from sft_toolkit.errors import RecordError

_MOVED = ("instruction", "input", "output", "system", "history")


def matches(record: dict[str, Any]) -> bool:
    return "messages" not in record and isinstance(record.get("instruction"), str) and "output" in record


def to_openai(record: dict[str, Any]) -> dict[str, Any]:
    """The input follows the instruction after an empty line; `history` holds earlier [question, answer] pairs."""
    messages: list[dict[str, Any]] = []
    if record.get("system"):
        messages.append({"role": "system", "content": record["system"]})
    for pair in record.get("history") or []:
        if not (isinstance(pair, list) and len(pair) == 2):
            raise RecordError("bad_messages", "history is not a list of [question, answer] pairs")
        messages.append({"role": "user", "content": pair[0]})
        messages.append({"role": "assistant", "content": pair[1]})
    question = "\n\n".join(part for part in (record["instruction"], record.get("input")) if part)
    messages.append({"role": "user", "content": question})
    messages.append({"role": "assistant", "content": record["output"]})
    rest = {key: value for key, value in record.items() if key not in _MOVED}
    return {**rest, "messages": messages}
