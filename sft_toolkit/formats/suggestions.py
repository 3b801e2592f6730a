"""Lines of a mapping that would let a refused record in: guessed from the names of its columns, and tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any

from sft_toolkit.errors import RecordError
from sft_toolkit.formats.columns import is_held
from sft_toolkit.formats.pairs import ANSWERS, QUESTIONS, is_switch, speaks_of_thinking
from sft_toolkit.formats.paths import opened
from sft_toolkit.formats.refusals import map_line

Lines = tuple[tuple[str, str], ...]
_NONE: Lines = ()
_QUESTION_PARTS = (
    *QUESTIONS,
    "ask",
    "user",
    "human",
    "dialogue",
    "dialog",
    "document",
    "article",
    "text",
    "source",
    "q",
)
_ANSWER_PARTS = (
    *ANSWERS,
    *("reply", "attempt", "summary", "sql", "generations", "responses", "answers", "chosen"),
    *("samples", "completions", "inferences", "text", "content", "explanation", "code", "a"),
)
_CONTEXT_PARTS = ("context", "article", "passage", "choices")
_TRANSCRIPTS = ("text", "chosen", "sample", "transcript", "dialogue", "conversation", "chat", "content", "prompt")
_TRIED = 24
_SHOWN_PATHS = 3
_DEPTH = 3


def suggested(record: dict[str, Any], works: Callable[[Lines], bool]) -> str:
    """The first guess that `works`, as options to paste; "" where none does."""
    for lines in islice(_guesses(record), _TRIED):
        if works(lines):
            return " ".join(map_line(key, path) for key, path in lines)
    return ""


def _guesses(record: dict[str, Any]) -> Iterator[Lines]:
    held = {name: opened(value) for name, value in record.items() if is_held(value)}
    lists = [path for path, value in _lists_of_messages(held, "", 0)]
    texts = {name: value for name, value in held.items() if isinstance(value, str)}
    yield from _conversations(held, lists)
    yield from _transcripts(texts)
    yield from _exchanges(held)


def _conversations(held: dict[str, Any], lists: list[str]) -> Iterator[Lines]:
    if "chosen" in held and isinstance(held.get("prompt"), list) and isinstance(held["chosen"], list):
        yield (("messages", "prompt"), ("messages", "chosen"))
    for path in lists:
        answers = _ranked({name: value for name, value in held.items() if name != path.split(".")[0]}, _ANSWER_PARTS)
        keys = _message_keys(_at(held, path))
        if _ends_with_question(_at(held, path)):
            yield from ((("messages", path), *keys, ("assistant", answer)) for answer in answers[:2])
        yield (("messages", path), *keys)


def _transcripts(texts: dict[str, str]) -> Iterator[Lines]:
    for name in sorted(texts, key=lambda name: _rank(name, _TRANSCRIPTS)):
        yield (("transcript", name),)


def _exchanges(held: dict[str, Any]) -> Iterator[Lines]:
    thoughts = [name for name in held if speaks_of_thinking(name) and not is_switch(held[name])]
    plain = {name: value for name, value in held.items() if name not in thoughts}
    contexts = tuple(("user", name) for name in _named(plain, _CONTEXT_PARTS))
    reasoning: list[Lines] = [(("reasoning", path),) for name in thoughts[:1] for path in _paths(name, held[name])] or [
        _NONE
    ]
    questions = [name for name in _ranked(plain, _QUESTION_PARTS) if isinstance(plain[name], str)]
    answers = _ranked(plain, _ANSWER_PARTS)
    if len(plain) == 1 or not answers:
        yield from ((("user", question),) for question in questions[:1])
    for question, answer in product(questions[:3], answers[:4]):
        if question == answer:
            continue
        for path, thought in product(_paths(answer, plain[answer]), reasoning):
            asked = tuple(line for line in contexts if line[1] not in (question, answer))
            yield (*asked, ("user", question), *thought, ("assistant", path))
    yield from ((("user", question),) for question in questions[:1])


def _paths(name: str, value: Any) -> list[str]:
    """Paths to texts: the column, or the first texts inside a list or object."""
    return list(islice(_texts_in(name, value, 0), _SHOWN_PATHS))


def _texts_in(path: str, value: Any, depth: int) -> Iterator[str]:
    value = opened(value)
    if isinstance(value, str | int | float):
        yield path
    elif depth < _DEPTH and isinstance(value, list) and value:
        yield from _texts_in(f"{path}.0", value[0], depth + 1)
    elif depth < _DEPTH and isinstance(value, dict):
        names = sorted(value, key=lambda name: _rank(name, _ANSWER_PARTS))
        for name in names:
            if isinstance(value[name], str | list | dict):
                yield from _texts_in(f"{path}.{name}", value[name], depth + 1)


def _lists_of_messages(value: Any, path: str, depth: int) -> Iterator[tuple[str, list[Any]]]:
    """Lists of objects with text in them, wherever they lie, the outer ones first."""
    if depth > _DEPTH or not isinstance(value, dict):
        return
    for name, inner in value.items():
        inner = opened(inner)
        if isinstance(inner, list) and inner and all(isinstance(item, dict) for item in inner):
            yield f"{path}{name}", inner
    for name, inner in value.items():
        yield from _lists_of_messages(opened(inner), f"{path}{name}.", depth + 1)


def _at(held: dict[str, Any], path: str) -> Any:
    value: Any = held
    for part in path.split("."):
        value = opened(value.get(part)) if isinstance(value, dict) else None
    return value


def _message_keys(messages: Any) -> Lines:
    """The keys of speaker and text in messages that have none of the usual names for them."""
    first = messages[0] if isinstance(messages, list) and messages and isinstance(messages[0], dict) else {}
    texts = [name for name, value in first.items() if isinstance(value, str)]
    lines: list[tuple[str, str]] = []
    if not any(key in first for key in ("role", "from")):
        speaker = next(
            (name for name in texts if name.casefold() in ("speaker", "author", "sender", "who", "name")), None
        )
        lines += [("role", speaker)] if speaker else []
    if not any(key in first for key in ("content", "value", "parts", "tool_calls")):
        used = {path for _, path in lines} | {"role", "from"}
        text = max((name for name in texts if name not in used), key=lambda name: len(first[name]), default=None)
        lines += [("content", text)] if text else []
    return tuple(lines)


def _ends_with_question(messages: Any) -> bool:
    last = messages[-1] if isinstance(messages, list) and messages else None
    return isinstance(last, dict) and str(last.get("role", last.get("from"))).casefold() in ("user", "human")


def _ranked(held: dict[str, Any], parts: tuple[str, ...]) -> list[str]:
    """Columns that hold texts, those first whose names say the wanted; the others in the order of the record."""
    found = [name for name, value in held.items() if isinstance(value, str | list | dict)]
    return sorted(found, key=lambda name: _rank(name, parts))


def _named(held: dict[str, Any], parts: tuple[str, ...]) -> list[str]:
    return [name for name in held if name.casefold() in parts and isinstance(held[name], str)]


def _rank(name: str, parts: tuple[str, ...]) -> tuple[int, int]:
    fold = name.casefold()
    if fold in parts:
        return 0, parts.index(fold)
    words = fold.replace("-", "_").replace(" ", "_").split("_")
    inside = [place for place, part in enumerate(parts) if part in words]
    return (1, inside[0]) if inside else (2, 0)


def refused(error: RecordError, columns: str, advice: str) -> RecordError:
    """The error with the record's columns and the advice in it."""
    hint = "; ".join(part for part in (advice, error.hint) if part)
    return RecordError(error.reason, f"{error.detail} (columns: {columns})", hint)
