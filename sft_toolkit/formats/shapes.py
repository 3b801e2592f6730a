"""The shapes of records that are known alone, in the order in which they are looked for: the first that fits is read.

A shape says what a record is (a draft), that it is not of its kind (None), or why it may not be read (RecordError).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sft_toolkit.errors import RecordError
from sft_toolkit.formats.columns import CONVERSATIONS, Columns, Draft
from sft_toolkit.formats.dialects import read_transcript
from sft_toolkit.formats.mapping import ColumnMapping
from sft_toolkit.formats.message_lists import as_messages, is_list, looks_like_messages, opened_list
from sft_toolkit.formats.pairs import (
    ANSWERS,
    QUESTIONS,
    Rivals,
    answer_message,
    read_pair,
    reasoning_column,
    thinking_rivals,
)
from sft_toolkit.formats.paths import opened
from sft_toolkit.formats.turns import MessageForm

_MESSAGES = "messages"
_PREFERENCE = ("chosen", "rejected")
_HALVES = (("prompt", "completion"), ("input", "output"))
_ANSWERS_BY_PART = ("response", "answer", "output", "completion", "solution", "generation", "reply", "chosen")


class Reading(NamedTuple):
    """What a shape needs to know besides the record."""

    form: MessageForm
    mapping: ColumnMapping


Shape = Callable[[Columns, Reading], Draft | None]


def messages_column(columns: Columns, reading: Reading) -> Draft | None:
    """`messages` wins over every other column."""
    name = columns.layout.by_fold.get(_MESSAGES)
    if name is None or columns.record[name] is None or reading.mapping.unread(_MESSAGES):
        return None
    draft = _list_draft(columns, name, reading)
    draft.unread += _answers_beside(columns, draft, name, reading)
    return draft


def preference(columns: Columns, reading: Reading) -> Draft | None:
    """`chosen` and `rejected` are trained only by mapping."""
    found = [name for fold in _PREFERENCE if (name := columns.name(fold)) is not None]
    found = [name for name in found if isinstance(columns.record[name], str | list | dict)]
    if found:
        raise RecordError(
            "preference_data", f"{' and '.join(found)} hold preferences, which are trained only by mapping"
        )
    return None


def glaive(columns: Columns, reading: Reading) -> Draft | None:
    """`system` and `chat`, the second a transcript with USER: (glaive-function-calling-v2)."""
    system, chat = columns.name("system"), columns.name("chat")
    text = columns.record[chat] if chat is not None else None
    if system is None or chat is None or not isinstance(text, str) or "USER:" not in text:
        return None
    given = columns.record[system]
    prompt = str(given).strip().removeprefix("SYSTEM:").strip() if not reading.mapping.unread("system") else ""
    messages = [{"role": role, "content": said} for role, said in read_transcript(text)]
    draft = Draft(messages, columns.record, {chat: "transcript"})
    if prompt:
        draft.messages.insert(0, {"role": "system", "content": prompt})
        draft.taken[system] = "system"
    return draft


def known_list(columns: Columns, reading: Reading) -> Draft | None:
    """`conversations`, `conversation` or `contents`: messages, pairs, or texts that alternate."""
    if reading.mapping.unread(_MESSAGES):
        return None
    for fold in CONVERSATIONS:
        name = columns.name(fold)
        if name is not None and is_list(opened(columns.record[name])):
            draft = _list_draft(columns, name, reading)
            _refuse_answer_beside(columns, draft, name, reading)
            return draft
    return None


def two_halves(columns: Columns, reading: Reading) -> Draft | None:
    """Prompt and completion, or input and output, of which one is a list of messages or of items of an API.

    Assistant messages of the first half are context.
    """
    for halves in _HALVES:
        first, second = (columns.name(fold) for fold in halves)
        if first is None or second is None or reading.mapping.unread("assistant"):
            continue
        sides = [opened(columns.record[name]) for name in (first, second)]
        lists = [looks_like_messages(side, reading.form) for side in sides]
        if not any(lists) or not all(
            is_list or isinstance(side, str) for is_list, side in zip(lists, sides, strict=True)
        ):
            continue
        head = sides[0] if lists[0] else [{"role": "user", "content": sides[0]}]
        draft = Draft(list(head), columns.record, {first: _MESSAGES, second: _MESSAGES}, context=len(head))
        if lists[1]:
            draft.messages += sides[1]
        else:
            _append_answer(columns, draft, second, reading)
        return draft
    return None


def _append_answer(columns: Columns, draft: Draft, answer: str, reading: Reading) -> None:
    """The answer as text behind messages, with the reasoning beside it; a second answer or reasoning is a rival."""
    reasoning = None
    rivals = [name for name in _texts_named(columns, ANSWERS) if name != answer and name not in draft.taken]
    if not reading.mapping.unread("reasoning"):
        reasoning = reasoning_column(columns)
        rivals += thinking_rivals(columns, reasoning)
    if rivals:
        raise Rivals(rivals, f"which of {', '.join([answer, *rivals])} is to be read is not clear")
    draft.messages.append(answer_message(columns, answer, reasoning))
    draft.taken[answer] = "assistant"
    if reasoning is not None:
        draft.taken[reasoning] = "reasoning"


def one_list(columns: Columns, reading: Reading) -> Draft | None:
    """Exactly one column, of any name, that is a list of messages."""
    if reading.mapping.unread(_MESSAGES):
        return None
    questions = _texts_named(columns, QUESTIONS)
    found = [
        name
        for name, value in columns.held().items()
        if looks_like_messages(opened(value), reading.form) and not (questions and name.casefold() == "history")
    ]
    if len(found) > 1:
        raise Rivals(found, f"which of {' and '.join(found)} is the conversation is not clear")
    if not found:
        return None
    draft = _list_draft(columns, found[0], reading)
    _refuse_answer_beside(columns, draft, found[0], reading)
    if not any(_is_from_asker(message, reading.form) for message in draft.messages) and questions:
        raise Rivals(questions, f"{found[0]} holds no question, and {questions[0]} may be it")
    return draft


def _is_from_asker(message: Any, form: MessageForm) -> bool:
    names = [message.get(key) for key in form.role_keys]
    return not all(name is None or str(name).casefold() in ("assistant", "gpt", "model", "bot") for name in names)


def _refuse_answer_beside(columns: Columns, draft: Draft, name: str, reading: Reading) -> None:
    """Raises Rivals where a conversation ends with a question and another column may hold the answer."""
    beside = _answers_beside(columns, draft, name, reading)
    if beside:
        raise Rivals(beside, f"{name} ends with a question, and {' or '.join(beside)} may be the answer")


def _answers_beside(columns: Columns, draft: Draft, name: str, reading: Reading) -> list[str]:
    """The columns that by their name may hold the answer, where the conversation ends with a question."""
    last = draft.messages[-1]
    speakers = [last.get(key) for key in reading.form.role_keys] if isinstance(last, dict) else ["?"]
    if any(str(speaker).casefold() not in ("user", "human", "none") for speaker in speakers):
        return []
    return [
        other
        for other, value in columns.held().items()
        if other != name and isinstance(value, str) and any(part in other.casefold() for part in _ANSWERS_BY_PART)
    ]


def _texts_named(columns: Columns, folds: tuple[str, ...]) -> list[str]:
    names = (columns.name(fold) for fold in folds)
    return [name for name in names if name is not None and isinstance(columns.record[name], str)]


def question_and_calls(columns: Columns, reading: Reading) -> Draft | None:
    """xLAM: `query`, `answers` that are calls, and `tools`."""
    query, answers, tools = columns.name("query"), columns.layout.by_fold.get("answers"), columns.name("tools")
    if query is None or answers is None or tools is None or not isinstance(columns.record[query], str):
        return None
    calls = opened(columns.record[answers])
    if not isinstance(calls, list):
        return None
    if not calls:
        raise RecordError("no_calls", f"{answers} is an empty list: there is neither a call nor a text to train")
    if not all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in calls):
        return None
    messages = [
        {"role": "user", "content": columns.record[query]},
        {"role": "assistant", "content": None, "tool_calls": calls},
    ]
    return Draft(messages, columns.record, {query: "user", answers: "tool calls"})


def pair(columns: Columns, reading: Reading) -> Draft | None:
    """One question and one answer."""
    return None if reading.mapping.unread("user") else read_pair(columns, reading.mapping)


def _list_draft(columns: Columns, name: str, reading: Reading) -> Draft:
    messages = as_messages(opened_list(columns.record[name], name), name, reading.form)
    return Draft(messages, columns.record, {name: _MESSAGES})


_LOOKED_FOR: tuple[Shape, ...] = (
    messages_column,
    preference,
    glaive,
    known_list,
    two_halves,
    question_and_calls,
    one_list,
    pair,
)
SHAPES: dict[str, tuple[Shape, ...]] = {
    "auto": _LOOKED_FOR,
    "openai": (messages_column,),
    "sharegpt": (known_list,),
    "alpaca": (pair,),
}
"""The shapes that each `--format` looks for, in order."""


def recognised(columns: Columns, source_format: str, reading: Reading) -> Draft | None:
    """The draft of the first shape that fits, None where none does."""
    drafts = (shape(columns, reading) for shape in SHAPES[source_format])
    return next((draft for draft in drafts if draft is not None), None)
