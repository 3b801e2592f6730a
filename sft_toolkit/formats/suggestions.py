"""Lines of a mapping that would let a refused record in: guessed from the names of its columns, and tried."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice, pairwise, product
from typing import Any

from sft_toolkit.formats.columns import is_held
from sft_toolkit.formats.pairs import ANSWERS, QUESTIONS, is_switch, speaks_of_thinking
from sft_toolkit.formats.paths import opened
from sft_toolkit.formats.refusals import map_line

Lines = tuple[tuple[str, str], ...]
_ASKING = (*QUESTIONS, *("ask", "user", "history", "q", "dialogue", "dialog", "document", "article", "source", "text"))
_ANSWERING = (
    *ANSWERS,
    *("reply", "attempt", "summary", "sql", "chosen", "generations", "responses", "answers", "samples"),
    *("completions", "inferences", "text", "content", "explanation", "code", "assistant", "a"),
)
_CONTEXTS = ("context", "article", "passage")
_SPEAKERS = ("speaker", "author", "sender", "who", "name")
_LABEL = re.compile(
    r"(?:^|[_ -])(?:ids?|uuid|hash|url|link|date|time|timestamp|lang|language|type|category|kind|model|license|split)$"
)
_DIALOGUE = re.compile(r"data|dialog|turn|conv|chat|message|utterance")
_TRIED = 40
_DEPTH = 4
_NO_LINES: Lines = ()


def suggested(record: dict[str, Any], works: Callable[[Lines], bool]) -> str:
    """The first guess that `works`, as options to paste; "" where none does."""
    held = {name: opened(value) for name, value in record.items() if is_held(value)}
    guesses = (guess for kind in (_conversations, _transcripts, _exchanges, _inner_texts) for guess in kind(held))
    writable = (lines for lines in guesses if all(path for _, path in lines))  # an empty path says: read nothing
    lines = next((lines for lines in islice(writable, _TRIED) if works(lines)), _NO_LINES)
    return " ".join(map_line(key, path) for key, path in lines)


def _conversations(held: dict[str, Any]) -> Iterator[Lines]:
    """Lists of messages, wherever they lie; with the answer beside them where they end with a question."""
    for name, value in held.items():
        texts = isinstance(value, list) and len(value) % 2 == 0 and all(isinstance(text, str) for text in value)
        if texts and _DIALOGUE.search(name.casefold()):
            yield (("messages", name),)
    if isinstance(held.get("chosen"), list) and isinstance(held.get("prompt"), list):
        yield (("messages", "prompt"), ("messages", "chosen"))
    for path, messages in _lists_of_objects(held, "", 0):
        keys = _message_keys(messages)
        if _ends_with_question(messages):
            others = {name: value for name, value in held.items() if not path.startswith(name)}
            yield from ((("messages", path), *keys, ("assistant", name)) for name in _ranked(others, _ANSWERING)[:2])
        yield (("messages", path), *keys)
        yield (("messages", path), *keys, *_speakers(messages, keys))


def _transcripts(held: dict[str, Any]) -> Iterator[Lines]:
    for name in _ranked(held, ("transcript", "text", "chosen", "sample", "dialogue", "conversation")):
        if isinstance(held[name], str):
            yield (("transcript", name),)


def _exchanges(held: dict[str, Any]) -> Iterator[Lines]:
    """A question with its context, the reasoning where a column speaks of it, and an answer."""
    thoughts = [name for name in held if speaks_of_thinking(name) and not is_switch(held[name])]
    thoughts.sort(key=lambda name: (bool(_LABEL.search(name.casefold())), -len(str(held[name]))))
    plain = {name: value for name, value in held.items() if name not in thoughts}
    paths = [path for name in thoughts[:1] for path in islice(_texts_in(name, held[name], 0), 2)]
    reasonings: list[Lines] = [*((("reasoning", path),) for path in paths), _NO_LINES]
    questions = [name for name in _ranked(plain, _ASKING) if isinstance(plain[name], str)]
    answers = _ranked(plain, _ANSWERING)
    for question, answer in product(questions[:2], answers[:4]):
        if question == answer:
            continue
        asked = _asked(plain, question, answer)
        for path, reasoning in product(islice(_texts_in(answer, plain[answer], 0), 2), reasonings):
            yield (*asked, *reasoning, ("assistant", path))
    if len(questions) == 1 and len(answers) == 1:
        yield (("user", questions[0]),)


def _asked(plain: dict[str, Any], question: str, answer: str) -> Lines:
    """The columns that make the question: a context before it, but what an instruction is about behind it."""
    beside = [name for name in plain if name.casefold() in _CONTEXTS and isinstance(plain[name], str)]
    after: list[str] = []
    if question.casefold() == "instruction":
        after = [name for name in plain if name.casefold() in ("input", "context") and isinstance(plain[name], str)]
    before = [name for name in beside if name not in after]
    names = [name for name in (*before, question, *after) if name != answer]
    return tuple(("user", name) for name in dict.fromkeys(names))


def _inner_texts(held: dict[str, Any]) -> Iterator[Lines]:
    """Two texts anywhere inside, in the order in which they stand."""
    paths = [path for name, value in held.items() for path in islice(_texts_in(name, value, 0), 8)]
    paths = [path for path in paths if not _LABEL.search(path.casefold())]
    yield from ((("user", first), ("assistant", second)) for first, second in pairwise(paths))


def _texts_in(path: str, value: Any, depth: int) -> Iterator[str]:
    """Paths to the texts of a column: itself, or those inside, those of a list's first element alone."""
    value = opened(value)
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield path
    elif depth < _DEPTH and isinstance(value, list) and value:
        yield from _texts_in(f"{path}.0", value[0], depth + 1)
    elif depth < _DEPTH and isinstance(value, dict):
        for name in sorted(value, key=lambda name: _rank(name, value[name], _ANSWERING)):
            yield from _texts_in(f"{path}.{name}", value[name], depth + 1)


def _lists_of_objects(value: Any, path: str, depth: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Lists of objects wherever they lie, the outer ones first."""
    if depth > _DEPTH or not isinstance(value, dict):
        return
    for name, inner in value.items():
        inner = opened(inner)
        if isinstance(inner, list) and inner and all(isinstance(item, dict) for item in inner):
            yield f"{path}{name}", inner
    for name, inner in value.items():
        yield from _lists_of_objects(opened(inner), f"{path}{name}.", depth + 1)


def _message_keys(messages: list[dict[str, Any]]) -> Lines:
    """The keys of speaker and text in messages that have none of the usual names for them."""
    first = messages[0]
    texts = {name: value for name, value in first.items() if isinstance(value, str)}
    lines: list[tuple[str, str]] = []
    if not any(key in first for key in ("role", "from")):
        speaker = next((name for name in texts if name.casefold() in _SPEAKERS), None)
        lines += [("role", speaker)] if speaker is not None else []
    if not any(key in first for key in ("content", "value", "parts", "tool_calls")):
        others = [name for name in texts if name not in ("role", "from", *(path for _, path in lines))]
        lines += [("content", max(others, key=lambda name: len(texts[name])))] if others else []
    return tuple(lines)


def _speakers(messages: list[dict[str, Any]], keys: Lines) -> Lines:
    """The first to speak as the user, the second as the assistant."""
    key = dict(keys).get("role", "role" if "role" in messages[0] else "from")
    names = list(dict.fromkeys(name for message in messages if isinstance(name := message.get(key), str)))
    return (("as-user", names[0]), ("as-assistant", names[1])) if len(names) == 2 else _NO_LINES


def _ends_with_question(messages: list[dict[str, Any]]) -> bool:
    last = messages[-1]
    return str(last.get("role", last.get("from"))).casefold() in ("user", "human")


def _ranked(held: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    """Columns that may hold texts, those first whose names say the wanted, the longer text before the shorter."""
    found = [name for name, value in held.items() if not isinstance(value, bool)]
    return sorted(found, key=lambda name: _rank(name, held[name], names))


def _rank(name: str, value: Any, names: tuple[str, ...]) -> tuple[int, int]:
    fold = name.casefold()
    length = len(value) if isinstance(value, str) else 0
    if fold in names[: len(QUESTIONS)] or (fold in ANSWERS and fold in names):
        return 0, -length
    if fold in names:
        return 1, names.index(fold)
    if _LABEL.search(fold):
        return 4, 0
    if not set(re.split(r"[^a-z]+", fold)).isdisjoint(names):
        return 2, -length
    return 3, 0 if isinstance(value, str | list | dict) else 1
