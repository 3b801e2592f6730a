"""Lists that hold a conversation: messages, pairs of question and answer, or texts that alternate."""

from __future__ import annotations

from typing import Any

from sft_toolkit.errors import RecordError
from sft_toolkit.formats.paths import opened
from sft_toolkit.formats.refusals import shown
from sft_toolkit.formats.speakers import ITEM_TYPES
from sft_toolkit.formats.turns import MessageForm
from sft_toolkit.json_text import decode

_PAIRS = (("input", "output"), ("human", "assistant"))
_CALLS = "tool_calls"


def opened_list(value: Any, name: str) -> list[Any]:
    """The list under a column, which may be JSON text. Raises RecordError naming the column."""
    if isinstance(value, str):
        try:
            value = decode(value)
        except ValueError as fault:
            raise RecordError("bad_messages", f"{name} is text that is not JSON: {fault}") from fault
    if not is_list(value):
        raise RecordError("bad_messages", f"{name} is {shown(value)} and not a list")
    rows: list[Any] = _rows(value, name) if isinstance(value, dict) else value
    if not rows:
        raise RecordError("empty_conversation", f"{name} is empty")
    return rows


def is_list(value: Any) -> bool:
    """Whether a value is a list, or an object of lists that stands for one."""
    columns = value.values() if isinstance(value, dict) else ()
    return isinstance(value, list) or (bool(columns) and all(isinstance(column, list) for column in columns))


def _rows(columns: dict[str, list[Any]], name: str) -> list[dict[str, Any]]:
    """The objects of an object of lists, as `datasets` stores a sequence of objects."""
    if len({len(column) for column in columns.values()}) > 1:
        raise RecordError("bad_messages", f"{name} is an object of lists that differ in length")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def as_messages(value: list[Any], name: str, form: MessageForm) -> list[Any]:
    """The messages of a list under a known name. Raises RecordError where texts do not come in pairs."""
    if all(isinstance(item, str) for item in value):
        inside = [opened(item) for item in value]
        if looks_like_messages(inside, form):
            return inside
        if len(value) % 2:
            raise RecordError(
                "bad_messages",
                f"{name} holds {len(value)} texts, which do not alternate in pairs",
                "an answer is missing",
            )
        return [{"role": "assistant" if place % 2 else "user", "content": text} for place, text in enumerate(value)]
    keys = _pair_keys(value, form)
    return value if keys is None else [message for pair in value for message in _exchange(pair, *keys)]


def _pair_keys(value: list[Any], form: MessageForm) -> tuple[str, str] | None:
    """The keys of question and answer where every element is such a pair."""
    if not all(isinstance(item, dict) and not any(item.get(key) for key in form.role_keys) for item in value):
        return None
    return next((pair for pair in _PAIRS if all(item.keys() >= set(pair) for item in value)), None)


def _exchange(pair: dict[str, Any], question: str, answer: str) -> list[dict[str, Any]]:
    """The messages of a pair; what else it holds is the answer's. A question whose answer is null is the last."""
    rest = {key: value for key, value in pair.items() if key not in (question, answer, "system")}
    messages = [{"role": "user", "content": pair[question]}, {**rest, "role": "assistant", "content": pair[answer]}]
    if pair[answer] is None and not rest:
        messages.pop()
    return [{"role": "system", "content": pair["system"]}, *messages] if pair.get("system") else messages


def looks_like_messages(value: Any, form: MessageForm) -> bool:
    """Whether a value is a list of objects that say who speaks and what."""
    return isinstance(value, list) and bool(value) and all(_is_message(item, form) for item in value)


def _is_message(item: Any, form: MessageForm) -> bool:
    if not isinstance(item, dict):
        return False
    if item.get("type") in ITEM_TYPES if isinstance(item.get("type"), str) else False:
        return True
    speaks = any(isinstance(item.get(key), str) for key in form.role_keys)
    return speaks and any(key in item for key in (*form.content_keys, _CALLS))
