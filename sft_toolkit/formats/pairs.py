"""Records of one question and one answer, by the names that public data gives them, and what must not stand beside."""

from __future__ import annotations

import re
from typing import Any

from sft_toolkit.errors import RecordError
from sft_toolkit.formats.columns import Columns, Draft, is_held
from sft_toolkit.formats.mapping import ColumnMapping
from sft_toolkit.formats.paths import opened
from sft_toolkit.formats.refusals import shown

QUESTIONS = ("instruction", "prompt", "question", "query", "problem", "input", "inputs")
ANSWERS = (
    *("output", "response", "completion", "answer", "solution"),
    *("target", "targets", "generation", "generated_solution"),
)
REASONINGS = ("reasoning", "reasoning_content", "thinking")
_ANSWER_LISTS = ("generations", "responses", "answers", "samples", "completions", "inferences")
_CONTEXTS = ("context", "article", "passage", "choices")
_SWITCHES = frozenset({"on", "off", "yes", "no", "true", "false"})
_THINKING = re.compile(r"think|thought|reason|rationale|analys|trace|trajector|(?<![a-z])(?:long|short)?cots?(?![a-z])")
_NOT_THINKING = re.compile(r"(?:finish|stop|end)(?:ed)?[ _-]?reason|reasoning?[ _-]?(?:effort|tokens)|backtrace")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HISTORY = "history"


class Rivals(RecordError):
    """Several columns may be what one reading wants; `columns` are those that stand beside it."""

    def __init__(self, columns: list[str], detail: str) -> None:
        super().__init__("rival_columns", detail)
        self.columns = columns


def read_pair(columns: Columns, mapping: ColumnMapping) -> Draft | None:
    """The exchange of a record with exactly one question and one answer; None where it has no such pair.

    Raises Rivals where a second reading stands beside it, RecordError for columns of another kind.
    """
    questions = _texts(columns, QUESTIONS)
    answers = [] if mapping.unread("assistant") else _texts(columns, ANSWERS)
    if not questions or (not answers and not mapping.unread("assistant")):
        _refuse_without_text(columns, questions)
        return None
    parts, more = _question(columns, questions, answers)
    rivals = [*more, *answers[1:], *_beside(columns, parts, _ANSWER_LISTS if answers else ())]
    reasoning = None if mapping.unread("reasoning") else reasoning_column(columns)
    if not mapping.unread("reasoning"):
        rivals += thinking_rivals(columns, reasoning)
    if rivals:
        named = ", ".join(dict.fromkeys([*parts, *answers[:1], *rivals]))
        raise Rivals(list(dict.fromkeys(rivals)), f"which of {named} is to be read is not clear")
    record = columns.record
    draft = Draft(_history(columns), record)
    draft.taken.update(dict.fromkeys(parts, "user"))
    draft.messages.append(
        {"role": "user", "content": "\n\n".join(record[name] for name in parts if is_held(record[name]))}
    )
    if answers:
        draft.messages.append(answer_message(columns, answers[0], reasoning))
        draft.taken[answers[0]] = "assistant"
    if reasoning is not None:
        draft.taken[reasoning] = "reasoning"
    history = columns.layout.by_fold.get(_HISTORY)
    if history is not None:
        draft.taken[history] = "messages"
    for name in (columns.layout.by_fold.get("input"), columns.layout.by_fold.get("context")):
        if name is not None and name not in draft.taken and not is_held(record[name]):
            draft.taken[name] = "user"
    return draft


def answer_message(columns: Columns, answer: str, reasoning: str | None) -> dict[str, Any]:
    message = {"role": "assistant", "content": columns.record[answer]}
    return message if reasoning is None else {**message, "reasoning": columns.record[reasoning]}


def _texts(columns: Columns, folds: tuple[str, ...]) -> list[str]:
    """The columns of those names that hold text."""
    found = (columns.name(fold) for fold in folds)
    return [name for name in found if name is not None and isinstance(columns.record[name], str)]


def _refuse_without_text(columns: Columns, questions: list[str]) -> None:
    """Raises RecordError where an answer stands beside the question, and one of them is empty."""
    names = [columns.layout.by_fold[fold] for fold in ANSWERS if fold in columns.layout.by_fold]
    empty = [name for name in names if isinstance(columns.record[name], str)]
    asked = [columns.layout.by_fold[fold] for fold in QUESTIONS if fold in columns.layout.by_fold]
    if asked and not any(is_held(columns.record[name]) for name in asked) and _texts(columns, ANSWERS):
        raise RecordError("empty_message", f"{asked[0]} is empty: there is no question", "drop the record")
    if questions and empty and not _beside(columns, [], _ANSWER_LISTS) and not thinking_rivals(columns, None):
        detail = f"{empty[0]} is empty, so that the assistant's stop token alone would be trained"
        raise RecordError("empty_message", detail, "drop the record")


def _question(columns: Columns, questions: list[str], answers: list[str]) -> tuple[list[str], list[str]]:
    """The columns that make the question, in order, and those of other questions."""
    first, others = questions[0], questions[1:]
    if first.casefold() == "instruction":
        given = columns.name("input")
        if given is not None and not isinstance(columns.record[given], str):
            raise RecordError("bad_content", f"{given} is {shown(columns.record[given])}, not text")
        if others and others[0] == given:
            return [first, given], others[1:]
        is_dolly = not others and [name.casefold() for name in answers] == ["response"]
        if is_dolly and (context := _texts(columns, ("context",))):
            return [first, *context], others
    return [first], others


def _beside(columns: Columns, parts: list[str], answer_lists: tuple[str, ...]) -> list[str]:
    """Columns beside a pair that hold a context or a list of answers."""
    contexts = [columns.name(fold) for fold in _CONTEXTS]
    lists = [columns.name(fold) for fold in answer_lists]
    found = [name for name in contexts if name is not None and name not in parts]
    found += [name for name in lists if name is not None and isinstance(columns.record[name], str | list | dict)]
    return found


def reasoning_column(columns: Columns) -> str | None:
    """The one column that is the reasoning by its name; equal ones count as one."""
    found = [name for name in _texts(columns, REASONINGS) if not is_switch(columns.record[name])]
    texts = {columns.record[name].strip() for name in found}
    return found[0] if len(texts) == 1 else None


def thinking_rivals(columns: Columns, reasoning: str | None) -> list[str]:
    """Columns with text whose name speaks of thinking, apart from the one that is the reasoning."""
    found = [
        name
        for name, value in columns.held().items()
        if name != reasoning and speaks_of_thinking(name) and _holds_text(value) and not is_switch(value)
    ]
    if reasoning is not None:
        text = columns.record[reasoning].strip()
        found = [name for name in found if not _repeats(columns.record[name], text)]
    return found


def _repeats(value: Any, text: str) -> bool:
    return isinstance(value, str) and value.strip() == text


def speaks_of_thinking(name: str) -> bool:
    plain = _CAMEL.sub("_", name).casefold().replace("co_t", "cot")
    return bool(_THINKING.search(plain)) and not _NOT_THINKING.search(plain)


def is_switch(value: Any) -> bool:
    return isinstance(value, str) and value.strip().casefold() in _SWITCHES


def _holds_text(value: Any) -> bool:
    """Text, or a list or object with text in it; a list of numbers or of yes and no holds none."""
    if isinstance(value, str):
        return True
    if isinstance(value, dict):
        return any(_holds_text(inner) for inner in value.values())
    return isinstance(value, list) and any(_holds_text(inner) for inner in value)


def _history(columns: Columns) -> list[dict[str, Any]]:
    """The exchanges before: pairs of question and answer, or messages."""
    name = columns.layout.by_fold.get(_HISTORY)
    given = opened(columns.record[name]) if name is not None else None
    if not is_held(given):
        return []
    if isinstance(given, list):
        if all(
            isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair) for pair in given
        ):
            roles = ("user", "assistant")
            return [{"role": role, "content": text} for pair in given for role, text in zip(roles, pair, strict=True)]
        if all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in given):
            return list(given)
    raise RecordError("bad_messages", f"{name} is not a list of [question, answer] pairs")
