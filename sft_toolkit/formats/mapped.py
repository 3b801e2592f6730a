"""Records read by mapping: the texts, messages or transcript that paths lead to, one draft for each star's element."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sft_toolkit.errors import RecordError
from sft_toolkit.formats.columns import Draft
from sft_toolkit.formats.dialects import read_transcript
from sft_toolkit.formats.mapping import TEXTS, ColumnMapping
from sft_toolkit.formats.message_lists import as_messages, opened_list
from sft_toolkit.formats.padding import without_padding
from sft_toolkit.formats.paths import EVERY, PathError, Place, narrowed, places, split_column
from sft_toolkit.formats.refusals import listed, map_line, shown
from sft_toolkit.formats.turns import MessageForm

_BESIDE = ("system", "tools", "id", "dataset", "domain", "difficulty", "effort", "provenance")


class MappedValues:
    """What the paths of a mapping lead to in one record, for each of the records that it gives."""

    def __init__(self, record: dict[str, Any], padded: bool, mapping: ColumnMapping, keys: tuple[str, ...]) -> None:
        self.record = record
        self._padded = padded
        self.found: dict[tuple[str, str], list[Place]] = {}
        for key in keys:
            for path in mapping.paths(key):
                self.found[key, path] = _places(record, key, path)
        starred = {path: len(found) for (_, path), found in self.found.items() if EVERY in path.split(".")}
        if len(set(starred.values())) > 1:
            lengths = ", ".join(f"{path} has {count}" for path, count in starred.items())
            raise RecordError("bad_mapping", f"lists that go side by side differ in length: {lengths}")
        self.count = next(iter(starred.values()), None)
        if self.count == 0:
            raise RecordError("empty_list", f"{', '.join(starred)}: the list is empty, so that the record would vanish")

    def value(self, key: str, path: str, number: int) -> Any:
        found = self.found[key, path]
        value = found[number if EVERY in path.split(".") else 0].value
        return without_padding(value) if self._padded else value

    def record_of(self, number: int) -> dict[str, Any]:
        """The record in which every list under a star is replaced by its element of that number."""
        record = dict(self.record)
        for (_, path), found in self.found.items():
            if EVERY in path.split("."):
                column, parts = split_column(self.record, path)
                record[column] = narrowed(self.record[column], parts, found[number].indexes)
        return without_padding(record) if self._padded else record


def _places(record: dict[str, Any], key: str, path: str) -> list[Place]:
    try:
        return places(record, path)
    except PathError as fault:
        raise RecordError(
            "path_absent", f"{map_line(key, path)}: the record lacks {fault}; its columns: {listed(record)}"
        ) from fault


def mapped_drafts(record: dict[str, Any], padded: bool, mapping: ColumnMapping, form: MessageForm) -> list[Draft]:
    """The drafts of a record whose conversation the mapping names. Raises RecordError for what cannot be read so."""
    values = MappedValues(record, padded, mapping, (*TEXTS, "messages", "transcript", *_BESIDE))
    return [_draft(values, mapping, form, number) for number in range(1 if values.count is None else values.count)]


def map_beside(draft: Draft, record: dict[str, Any], padded: bool, mapping: ColumnMapping) -> None:
    """Give the draft of a recognised record the system prompt, tools and labels that the mapping names."""
    values = MappedValues(record, padded, mapping, _BESIDE)
    if values.count is not None:
        raise RecordError("bad_mapping", "a star needs a mapped conversation", "take one element by its number")
    _map_beside(draft, values, mapping, 0)


def _draft(values: MappedValues, mapping: ColumnMapping, form: MessageForm, number: int) -> Draft:
    draft = Draft([], values.record_of(number))
    for path in mapping.paths("messages"):
        messages = values.value("messages", path, number)
        draft.messages += as_messages(_list(messages, path, values.record), path, form)
        _take(draft, values, path, "messages")
    transcript = mapping.path("transcript")
    if transcript is not None:
        text = as_text(values.value("transcript", transcript, number), "transcript", transcript)
        draft.messages += [{"role": role, "content": said} for role, said in read_transcript(text)]
        _take(draft, values, transcript, "transcript")
    texts = {key: _joined(draft, values, mapping, key, number) for key in TEXTS}
    if mapping.paths("user"):
        draft.messages.append({"role": "user", "content": _required("user", texts["user"], mapping)})
    if mapping.paths("assistant"):
        answer = {"role": "assistant", "content": _required("assistant", texts["assistant"], mapping)}
        draft.messages.append({**answer, "reasoning": texts["reasoning"]} if texts["reasoning"] else answer)
    _map_beside(draft, values, mapping, number)
    draft.number = None if values.count is None else number
    return draft


def _list(value: Any, path: str, record: dict[str, Any]) -> list[Any]:
    if value is None:
        raise RecordError("bad_messages", f"{map_line('messages', path)}: {path} is null")
    return opened_list(value, path)


def _joined(draft: Draft, values: MappedValues, mapping: ColumnMapping, key: str, number: int) -> str:
    """The texts of a key's paths with an empty line between, empty ones left out."""
    texts = []
    for path in mapping.paths(key):
        texts.append(as_text(values.value(key, path, number), key, path))
        _take(draft, values, path, key)
    return "\n\n".join(text for text in texts if text)


def _required(key: str, text: str, mapping: ColumnMapping) -> str:
    if text.strip():
        return text
    paths = " and ".join(mapping.paths(key))
    why = ", so that the assistant's stop token alone would be trained" if key == "assistant" else ""
    raise RecordError("empty_message", f"{paths} is empty{why}", "drop the record")


def _map_beside(draft: Draft, values: MappedValues, mapping: ColumnMapping, number: int) -> None:
    for key in _BESIDE:
        path = mapping.path(key)
        if path is None:
            continue
        value = values.value(key, path, number)
        if key == "system":
            draft.system = as_text(value, key, path)
        elif key == "tools":
            draft.tools = value
        else:
            draft.labels[key] = value
        _take(draft, values, path, key)


def _take(draft: Draft, values: MappedValues, path: str, what: str) -> None:
    """Note the column of a path; one of which the path takes a part survives beside it."""
    column, parts = split_column(values.record, path)
    earlier = draft.taken.get(column)
    if earlier is None and parts not in ([], [EVERY]):
        draft.kept.add(column)
    elif parts in ([], [EVERY]):
        draft.kept.discard(column)
    inner = ".".join(parts)
    entry = f"{what} (its {inner})" if inner else what
    draft.taken[column] = entry if earlier in (None, entry) else f"{earlier}, {entry}"


def as_text(value: Any, key: str, path: str) -> str:
    """Text, or a number or boolean as the record writes it; null is empty.

    Raises RecordError for an object, with the paths into it, and for a list, with its first and its every element.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal):
        return str(value)
    if isinstance(value, list):
        one, each = map_line(key, f"{path}.0"), map_line(key, f"{path}.{EVERY}")
        raise RecordError(
            "several_texts", f"{path} is a list where one text is wanted", f"{one} takes the first, {each} each"
        )
    if isinstance(value, dict):
        inner = [f"{path}.{name}" for name in value]
        hint = map_line(key, inner[0]) if inner else ""
        raise RecordError("not_text", f"{path} is an object where text is wanted; in it: {listed(inner)}", hint)
    raise RecordError("not_text", f"{path} is {shown(value)} where text is wanted")
