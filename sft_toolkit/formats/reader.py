"""Records of others as conversations: mapping, shape, messages, surroundings, labels, in this order."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError
from sft_toolkit.formats.assistant_turns import finished
from sft_toolkit.formats.columns import EMPTY, Columns, Draft, Layout, columns_of, layout_of
from sft_toolkit.formats.labels import effort_of, is_provenance, read_id, read_label
from sft_toolkit.formats.loss_flags import MASKED, TRAINED, FlagNames
from sft_toolkit.formats.mapped import map_beside, mapped_drafts
from sft_toolkit.formats.mapping import ColumnMapping
from sft_toolkit.formats.message_reading import read_turns
from sft_toolkit.formats.padding import without_padding
from sft_toolkit.formats.plain import check_results, content_hash, plain_conversation
from sft_toolkit.formats.refusals import listed
from sft_toolkit.formats.shapes import SHAPES, Reading, recognised
from sft_toolkit.formats.speakers import folded
from sft_toolkit.formats.suggestions import Lines, suggested
from sft_toolkit.formats.surroundings import apply_flag_lists, declared_tools, refuse_media, with_system
from sft_toolkit.formats.turns import SOURCE, MessageForm
from sft_toolkit.formats.unreadable import special_refusal

FORMATS = tuple(SHAPES)
_KINDS = ("user", "assistant", "system", "tool")
_LISTED = frozenset({"tree_over_rows", "tokens", "rendered_text", "wrong_format"})
_REMEMBERED = 256
_ADVISED = frozenset({"no_messages", "rival_columns", "preference_data", "not_a_conversation"})


@dataclass(frozen=True)
class RecordReader:
    """Reads records; `source_format` is one of FORMATS, and `mapping` says what its shapes do not.

    A refusal names a mapping that would let the record in, unless the reader only tries one itself (`advises`).
    """

    source_format: str = "auto"
    mapping: ColumnMapping = field(default_factory=ColumnMapping)
    advises: bool = True

    def to_json(self) -> dict[str, Any]:
        """What decides how records are read, for pinned options."""
        return {"source_format": self.source_format, "mapping": self.mapping.to_json()}

    def read(self, record: Any, padded: bool = False) -> list[Conversation]:
        """The conversations of a record: one, unless a path of the mapping holds a star.

        `padded`: its nulls may be padding of columns of structs, and mean nothing.
        Raises RecordError where it is no conversation; the sentence says which message or column is at fault.
        """
        if not isinstance(record, dict):
            if isinstance(record, list):
                hint = "write one record a line, for instance with jq -c '.[]'"
                raise RecordError("not_an_object", "the line is a JSON array, not one record", hint)
            raise RecordError("not_an_object", "the record is not a JSON object")
        try:
            if not padded and self._is_standard and (plain := plain_conversation(record)) is not None:
                return [plain]
            drafts = self._drafts(record, padded)
            conversations = [self._conversation(draft) for draft in drafts]
        except RecursionError as fault:
            raise RecordError("nested_too_deeply", "the record is nested too deeply to be read") from fault
        if drafts[0].number is not None:
            _number(conversations, drafts)
        return conversations

    def _drafts(self, record: dict[str, Any], padded: bool) -> list[Draft]:
        if self.mapping.shapes:
            return mapped_drafts(record, padded, self.mapping, self._form)
        clean = without_padding(record) if padded else record
        columns = columns_of(clean)
        try:
            found = recognised(columns, self.source_format, Reading(self._form, self.mapping))
            if found is None:
                raise self._unknown(columns)
            draft = found
        except RecordError as error:
            raise self._advised(error, clean) from error
        if self.mapping.entries:
            map_beside(draft, record, padded, self.mapping)
        return [draft]

    def _unknown(self, columns: Columns) -> RecordError:
        if self.source_format != "auto":
            return RecordError("wrong_format", f"the record is not in the {self.source_format} format")
        return special_refusal(columns) or RecordError("no_messages", "the record has no shape that is known")

    def _advised(self, error: RecordError, record: dict[str, Any]) -> RecordError:
        """The refusal with the record's columns and the mapping that would let it in."""
        if not self.advises or error.reason not in (*_ADVISED, *_LISTED):
            return error
        detail = f"{error.detail} (columns: {listed(record)})"
        if error.reason in _LISTED:
            return RecordError(error.reason, detail, error.hint)
        key = (error.reason, *record)
        if key not in self._advice:
            if len(self._advice) >= _REMEMBERED:
                self._advice.clear()
            self._advice[key] = suggested(record, lambda lines: self._reads(record, lines))
        hint = "; ".join(part for part in (self._advice[key], error.hint) if part)
        return RecordError(error.reason, detail, hint)

    def _reads(self, record: dict[str, Any], lines: Lines) -> bool:
        added: dict[str, tuple[str, ...]] = dict(self.mapping.entries)
        for key, path in lines:
            added[key] = (*(path for path in added.get(key, ()) if path), path)
        try:
            RecordReader(mapping=ColumnMapping(tuple(added.items())), advises=False).read(record)
        except RecordError:
            return False
        return True

    @cached_property
    def _advice(self) -> dict[tuple[str, ...], str]:
        """The advice by the reason of a refusal and the names of the record's columns: one guess for all alike."""
        return {}

    @cached_property
    def _is_standard(self) -> bool:
        return self.source_format == "auto" and not self.mapping.entries

    @cached_property
    def _form(self) -> MessageForm:
        mapping, standard = self.mapping, MessageForm()
        speakers = {folded(name): kind for kind in _KINDS for name in mapping.paths(f"as-{kind}")}
        flags = FlagNames(
            trained=(*mapping.paths("weight"), *TRAINED),
            masked=() if mapping.unread("masked") else (*mapping.paths("masked"), *MASKED),
            read=not mapping.unread("weight"),
        )
        return MessageForm(
            role_keys=(*mapping.paths("role"), *standard.role_keys),
            content_keys=(*mapping.paths("content"), *standard.content_keys),
            speakers=speakers,
            flags=flags,
            reads_effort=not mapping.unread("effort"),
        )

    def _conversation(self, draft: Draft) -> Conversation:
        layout = layout_of(tuple(draft.record))
        notes = [f"unread_answer: {name}" for name in draft.unread]
        if layout.media:
            refuse_media(draft.record, layout)
        turns = read_turns(draft.messages, self._form, notes)
        for turn in turns if draft.context else ():
            if turn.at < draft.context and turn.is_assistants:
                turn.message.weight = 0
        if layout.flags:
            apply_flag_lists(turns, draft, layout, self._form.flags)
        turns = with_system(turns, draft, layout, self.mapping, notes)
        tools = declared_tools(turns, draft, layout, self.mapping, notes)
        turns = finished(turns, tools, notes)
        messages = [turn.message for turn in turns]
        check_results(messages, [turn.at for turn in turns])
        labels, kept = self._labels(draft, layout)
        return Conversation(
            id=read_id(labels.get("id"), self.mapping.path("id") or "id") or content_hash(messages, tools),
            messages=messages,
            tools=tools,
            dataset=self._label("dataset", labels),
            domain=self._label("domain", labels),
            difficulty=self._label("difficulty", labels),
            effort=effort_of(labels, "the record has"),
            provenance=list(labels.get("provenance") or ()),
            extra=_extra(draft, layout, kept),
            notes=notes,
            columns=tuple((name, draft.taken[name]) for name in draft.record if name in draft.taken),
        )

    def _label(self, key: str, labels: dict[str, Any]) -> str | None:
        return read_label(key, labels.get(key), self.mapping.path(key) or key)

    def _labels(self, draft: Draft, layout: Layout) -> tuple[dict[str, Any], frozenset[str]]:
        """The labels of the record by key, and the columns of such a name that are not read as it."""
        found, kept = dict(draft.labels), set()
        for key, name in layout.labels.items():
            value = draft.record[name]
            if key in found or self.mapping.unread(key) or (key == "provenance" and not is_provenance(value)):
                kept.add(name)
            elif name not in draft.taken:
                found[key] = value
                draft.taken[name] = key
        if not is_provenance(found.get("provenance", [])):
            found.pop("provenance")
        return found, frozenset(kept)


def _extra(draft: Draft, layout: Layout, kept: frozenset[str]) -> dict[str, Any]:
    """The columns that are not read, under another name where their own would be read again."""
    extra = {}
    for name, value in draft.record.items():
        if name in draft.taken and name not in draft.kept and name not in kept:
            continue
        is_read = name in layout.is_read_by_name or (name in layout.flags and isinstance(value, list))
        if not is_read or (value in EMPTY and name not in layout.label_names):
            extra[name] = value
        elif value is not None:
            extra[f"{SOURCE}{name}"] = value
    return extra


def _number(conversations: list[Conversation], drafts: list[Draft]) -> None:
    """Ids ID#0, ID#1, … for the records of one row; without an id of its own that is the hash of all of them."""
    named = any("id" in draft.labels or "id" in dict(draft.taken).values() for draft in drafts)
    shared = content_hash([message for each in conversations for message in each.messages], [])
    for conversation, draft in zip(conversations, drafts, strict=True):
        conversation.id = f"{conversation.id if named else shared}#{draft.number}"
