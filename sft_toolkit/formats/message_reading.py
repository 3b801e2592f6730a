"""One message as data sets write it, to the toolkit's messages, before tools are known and dialects are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sft_toolkit.conversation import LOSS_SPANS, Message, ToolCall
from sft_toolkit.errors import RecordError
from sft_toolkit.formats.calls import call_list, calls_of_message, identifier, read_call, written_calls
from sft_toolkit.formats.canonical import canonical_message
from sft_toolkit.formats.labels import effort_of
from sft_toolkit.formats.loss_flags import WITHOUT_EFFECT, FlagNames, lowest_flag
from sft_toolkit.formats.parts import Contents, are_parts, read_parts
from sft_toolkit.formats.reasoning import FIELDS, field_reasoning
from sft_toolkit.formats.refusals import listed, map_line
from sft_toolkit.formats.speakers import CALL, ITEM_TYPES, THOUGHT, speaker_kind
from sft_toolkit.formats.tool_results import MEDIA, result_text
from sft_toolkit.formats.turns import SOURCE, MessageForm, Turn, carries_text

_CALL_KEYS = ("tool_calls", "function_call", "function_calls")
_MARKS = frozenset({"name", "mask_reason", "mask_detail", "effort"})
_RESULT_IDS = ("tool_call_id", "call_id", "tool_use_id")
_UNFLAGGED = FlagNames(read=False)
# What holds text and is none: ids, types of items, and what the toolkit's own stages write into a message.
_NO_TEXT = frozenset({"id", "type", "status", "backfill", "language_verdict", "verify"})


def read_turns(given: list[Any], form: MessageForm, notes: list[str]) -> list[Turn]:
    """Each message with its speaker, text, calls, results and flags. Raises RecordError that names the message."""
    turns: list[Turn] = []
    for at, message in enumerate(given):
        read = canonical_message(message, notes) if form.is_standard else None
        if read is not None:
            turns.append(Turn(read, read.role, at, message))
            continue
        try:
            turns += _MessageReader(at, message, form, notes).turns()
        except RecordError as error:
            raise RecordError(error.reason, f"message {at} {error.detail}", error.hint) from error
    return turns


class _MessageReader:
    """Reads one message. `used` are the keys that went into the message; the others survive beside it."""

    def __init__(self, at: int, given: Any, form: MessageForm, notes: list[str]) -> None:
        if not isinstance(given, dict):
            raise RecordError("bad_messages", "is not an object")
        self.given: dict[str, Any] = given
        self.form = form
        self.notes = notes
        role_key, self.kind = self._speaker()
        key = next((name for name in form.content_keys if given.get(name) is not None), None)
        self.content = None if key is None else given[key]
        self.used: set[str | None] = {role_key, key}
        self.used.update(("type",) if given.get("type") == "message" else ())
        self.turn = Turn(Message("assistant"), self.kind, at, given)
        self.message = self.turn.message

    def turns(self) -> Iterator[Turn]:
        """The messages that it is: several where it holds results of tools."""
        self._refuse_media()
        if self.kind == THOUGHT:
            yield from self._thought()
        elif self.kind in ("assistant", CALL):
            flags = [self._flag()]
            if self.kind == CALL:
                self._calls()
            else:
                flags.append(self._assistants())
            self.message.weight = min((flag for flag in flags if flag is not None), default=None)
            yield self._finished()
        else:
            yield from self._result() if self.kind == "tool" else self._askers()

    def _speaker(self) -> tuple[str | None, str]:
        """The key that names the speaker, and the part that this plays."""
        for key in self.form.role_keys:
            name = self.given.get(key)
            if isinstance(name, str):
                return key, speaker_kind(name, self.form.speakers)
        kind = self.given.get("type")
        if isinstance(kind, str) and kind in ITEM_TYPES:
            return "type", ITEM_TYPES[kind]
        detail = f"does not say who speaks (its keys: {listed(self.given)})"
        raise RecordError("unknown_role", detail, f"name the key: {map_line('role', 'KEY')}")

    def _refuse_media(self) -> None:
        for name in () if self.given.keys().isdisjoint(MEDIA) else MEDIA:
            if self.given.get(name) not in (None, "", [], {}):
                raise RecordError("image_part", f"has {name}", "only text can be trained here: drop such records")

    def _flag(self) -> int | None:
        return lowest_flag(self.given, self.form.flags)

    def _assistants(self) -> int | None:
        """Text, reasoning and calls; returns the flag that all parts of the content agree on."""
        message, content, inline, flag = self.message, self.content, "", None
        message.tool_calls = self._tool_calls()
        if isinstance(content, list):
            contents = self._parts(content, self._flag())
            if contents.results:
                raise RecordError("bad_content", "is the assistant's and holds a tool's result")
            message.tool_calls += contents.calls
            content, inline = contents.text, contents.reasoning
            flag = contents.flag
            if contents.loss_spans:
                message.extra[LOSS_SPANS] = contents.loss_spans
        message.content = _text(content)
        self._reasoning(inline)
        return flag

    def _reasoning(self, inline: str = "") -> None:
        self.message.reasoning = field_reasoning(self.given, inline, self.message.extra, self.notes)
        self.used.update(FIELDS, ("reasoning_details",))

    def _tool_calls(self) -> list[ToolCall]:
        given, calls = self.given, []
        self.used.update(_CALL_KEYS)
        for key in _CALL_KEYS:
            value = given.get(key)
            if key == "function_calls" and isinstance(value, str) and value.strip():
                calls += written_calls(value)
            elif value is not None:
                calls += [read_call(call, self.notes) for call in call_list(value, key)]
        return calls

    def _calls(self) -> None:
        """A message that is nothing but calls: in its text, or at its top as an item of the Responses API."""
        calls = self._tool_calls()
        if self.content is not None:
            calls += calls_of_message(self.content, self.notes)
        elif not calls:
            calls = [read_call({key: self.given[key] for key in self.given if key not in self.used}, self.notes)]
            self.used.update(self.given)
        self.message.tool_calls = calls
        self._reasoning()

    def _thought(self) -> Iterator[Turn]:
        """An item that is reasoning alone. A summary of it or its encrypted form is no trace: counted, not trained."""
        held = self.given.get("content")
        texts = read_parts([self.given], _UNFLAGGED, None, self.notes).thoughts if not isinstance(held, list) else []
        texts += read_parts(held, _UNFLAGGED, None, self.notes).thoughts if isinstance(held, list) else []
        self.message.reasoning = "".join(texts) or None
        if self.given.get("summary") or self.given.get("encrypted_content"):
            self.notes.append("reasoning_summary_left_out")
        if self.message.reasoning is not None:
            yield self.turn

    def _result(self) -> Iterator[Turn]:
        message, content = self.message, self.content
        message.role = "tool"
        if content is None and self.given.get("type") in ITEM_TYPES:
            content = self.given.get("output")
            self.used.update(("output", "type"))
        key = next((name for name in _RESULT_IDS if identifier(self.given.get(name)) is not None), None)
        message.tool_call_id = None if key is None else identifier(self.given[key])
        self.used.add(key)
        if isinstance(content, list) and are_parts(content, strictly=True):
            yield from self._parts_of_others(content)
        else:
            message.content = result_text(content)
            yield self._finished()

    def _askers(self) -> Iterator[Turn]:
        """What a user or the system says; a system message without text says nothing, but may declare tools."""
        self.message.role = self.kind
        if self.kind in ("system", "developer"):
            self.turn.functions = self.given.get("functions")
            self.used.add("functions")
        if isinstance(self.content, list):
            yield from self._parts_of_others(self.content)
        else:
            self.message.content = _text(self.content)
            yield self._finished()

    def _parts_of_others(self, content: list[Any]) -> Iterator[Turn]:
        """Results of tools are messages of their own, and text beside them is the user's, after them."""
        contents = self._parts(content, 0)
        role = self.message.role
        if contents.thoughts:
            raise RecordError("bad_reasoning", f"is from {role} and holds a thinking part; only the assistant thinks")
        if contents.calls:
            raise RecordError("bad_tool_calls", f"is from {role} and holds a call; only the assistant calls")
        yield from (Turn(result, "tool", self.turn.at, {}) for result in contents.results)
        self.message.content = contents.text or ""
        if contents.results:
            self.message.role = self.turn.kind = "user"
            self.message.tool_call_id = None
        if not contents.results or self.message.text.strip():
            yield self._finished()

    def _parts(self, content: list[Any], whole: int | None) -> Contents:
        if not are_parts(content):
            raise RecordError("bad_content", "has content that is neither text nor a list of parts")
        contents = read_parts(content, self.form.flags, whole, self.notes)
        if contents.rest:
            self.message.extra[f"{SOURCE}parts"] = contents.rest
        return contents

    def _finished(self) -> Turn:
        """Name, marks of earlier stages, and all that is not read."""
        message, given = self.message, self.given
        name = given.get("name")
        message.name = name if isinstance(name, str) and name and "name" not in self.used else None
        message.mask_reason, message.mask_detail = given.get("mask_reason"), given.get("mask_detail")
        message.effort = effort_of(given, "has") if self.form.reads_effort else None
        if message.role != "assistant" and self._tool_calls():
            raise RecordError("bad_tool_calls", f"has tool calls but is from {message.role}")
        if not self.form.reads_effort and given.get("effort") is not None:
            message.extra[f"{SOURCE}effort"] = given["effort"]
        for key, value in given.items():
            if key in self.form.flags.all:
                self._keep_flag(key, value)
            elif key not in self.used and key not in _MARKS:
                self._keep(key, value)
        return self.turn

    def _keep(self, key: str, value: Any) -> None:
        if value is None and key in self.message.extra:
            return
        if key not in self.form.kept_aside:
            self.message.extra[key] = value
        elif value is not None:
            self.message.extra[f"{SOURCE}{key}"] = value
        if key not in _NO_TEXT and not key.startswith(SOURCE) and carries_text(value):
            self.notes.append(f"unread_text: {key}")

    def _keep_flag(self, key: str, value: Any) -> None:
        """Flags that are not read are kept aside. A true one on what the model did not write trains nothing."""
        if not self.form.flags.read:
            if value is not None:
                self.message.extra[f"{SOURCE}{key}"] = value
        elif self.message.role != "assistant" and carries_text(value):
            self._keep(key, value)
        elif self.message.role != "assistant" and value:
            self.notes.append(WITHOUT_EFFECT)


def _text(content: Any) -> str | None:
    if content is None or isinstance(content, str):
        return content
    raise RecordError("bad_content", "has content that is neither text nor a list of parts")
