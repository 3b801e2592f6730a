"""One message as data sets write it, to the toolkit's messages, before tools are known and dialects are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sft_toolkit.conversation import Message, ToolCall
from sft_toolkit.errors import RecordError
from sft_toolkit.formats.calls import call_list, calls_of_message, identifier, read_call
from sft_toolkit.formats.canonical import canonical_message
from sft_toolkit.formats.dialects import read_call_text
from sft_toolkit.formats.labels import effort_of
from sft_toolkit.formats.loss_flags import WITHOUT_EFFECT, FlagNames, lowest_flag
from sft_toolkit.formats.parts import MEDIA, Contents, are_parts, read_parts, result_text
from sft_toolkit.formats.reasoning import FIELDS, field_reasoning
from sft_toolkit.formats.refusals import listed, map_line
from sft_toolkit.formats.speakers import CALL, ITEM_TYPES, THOUGHT, speaker_kind
from sft_toolkit.json_text import encode_text

_ROLE_KEYS = ("role", "from")
_CONTENT_KEYS = ("content", "value", "parts")
_CALL_KEYS = ("tool_calls", "function_call", "function_calls")
_OWN_KEYS = frozenset({"name", "mask_reason", "mask_detail", "effort", *_CALL_KEYS})
_RESULT_IDS = ("tool_call_id", "call_id", "tool_use_id")
# What the toolkit's own stages write into a message; the names that begin so were counted when they were first read.
_TOOLKIT_KEYS = frozenset({"backfill", "language_verdict", "verify"})
SOURCE = "source_"
"""Begins the name of what is kept unread though its own name says that it is read."""


@dataclass(frozen=True)
class MessageForm:
    """Under which keys of a message speaker, text and flags stand, and the names of speakers that a mapping adds."""

    role_keys: tuple[str, ...] = _ROLE_KEYS
    content_keys: tuple[str, ...] = _CONTENT_KEYS
    speakers: dict[str, str] = field(default_factory=dict)
    flags: FlagNames = field(default_factory=FlagNames)
    reads_effort: bool = True

    @cached_property
    def is_standard(self) -> bool:
        """True where a message in the toolkit's own form is what it seems."""
        return (
            (self.role_keys, self.content_keys) == (_ROLE_KEYS, _CONTENT_KEYS)
            and not self.speakers
            and self.flags.is_standard
            and self.reads_effort
        )


@dataclass(slots=True)
class Turn:
    """A message under way. `at` is the index of what it was read from, `given`; `kind` its speaker's part."""

    message: Message
    kind: str
    at: int
    given: dict[str, Any]
    functions: Any = None

    @property
    def is_assistants(self) -> bool:
        return self.message.role == "assistant"


def read_turns(given: list[Any], form: MessageForm, notes: list[str]) -> list[Turn]:
    """Each message with its speaker, text, calls, results and flags. Raises RecordError that names the message."""
    turns: list[Turn] = []
    is_standard = form.is_standard
    for at, message in enumerate(given):
        read = canonical_message(message, notes) if is_standard else None
        if read is not None:
            turns.append(Turn(read, read.role, at, message))
            continue
        try:
            turns += _read(at, message, form, notes)
        except RecordError as error:
            raise RecordError(error.reason, f"message {at} {error.detail}", error.hint) from error
    return turns


def _read(at: int, given: Any, form: MessageForm, notes: list[str]) -> Iterator[Turn]:
    if not isinstance(given, dict):
        raise RecordError("bad_messages", "is not an object")
    _refuse_media(given)
    role_key, kind = _speaker(given, form)
    key = next((name for name in form.content_keys if given.get(name) is not None), None)
    turn = Turn(Message("assistant"), kind, at, given)
    used = {role_key, key}
    if kind == THOUGHT:
        yield from _thought(turn, notes)
        return
    content = given[key] if key is not None else None
    if kind == CALL:
        _read_calls(turn, content, used, notes)
    elif kind == "assistant":
        _read_assistant(turn, content, form, used, notes)
    elif kind == "tool":
        yield from _read_result(turn, content, form, used, notes)
        return
    else:
        turn.message.role = kind
        yield from _read_other(turn, content, form, used, notes)
        return
    turn.message.weight = lowest_flag(given, form.flags)
    _finish(turn, form, used, notes)
    yield turn


def _refuse_media(given: dict[str, Any]) -> None:
    if not given.keys().isdisjoint(MEDIA):
        for name in MEDIA:
            if given.get(name) not in (None, "", [], {}):
                raise RecordError("image_part", f"has {name}", "only text can be trained here: drop such records")


def _speaker(given: dict[str, Any], form: MessageForm) -> tuple[str | None, str]:
    """The key that names the speaker, and the part that this plays."""
    for key in form.role_keys:
        name = given.get(key)
        if isinstance(name, str):
            return key, speaker_kind(name, form.speakers)
    kind = given.get("type")
    if isinstance(kind, str) and kind in ITEM_TYPES:
        return "type", ITEM_TYPES[kind]
    raise RecordError(
        "unknown_role",
        f"does not say who speaks (its keys: {listed(given)})",
        f"name the key: {map_line('role', 'KEY')}",
    )


def _read_assistant(turn: Turn, content: Any, form: MessageForm, used: set[str | None], notes: list[str]) -> None:
    message, given = turn.message, turn.given
    message.tool_calls = _calls(given, notes)
    inline = ""
    if isinstance(content, list):
        contents = _parts(content, form, lowest_flag(given, form.flags), notes)
        if contents.results:
            raise RecordError("bad_content", "is the assistant's and holds a tool's result")
        message.tool_calls += contents.calls
        content, inline = contents.text, contents.reasoning
        _take_flags(turn, contents)
        _keep_rest(message, contents)
    message.content = _text(content)
    message.reasoning = field_reasoning(given, inline, message.extra, notes)
    used.update(FIELDS)
    used.add("reasoning_details")


def _take_flags(turn: Turn, contents: Contents) -> None:
    """Flags that all parts agree on are the message's."""
    lowest = min((flag for flag in contents.flags if flag is not None), default=None)
    if lowest is not None and len(contents.flags) == len([flag for flag in contents.flags if flag is not None]):
        turn.given = {**turn.given, "weight": min(lowest, turn.given.get("weight", lowest))}


def _keep_rest(message: Message, contents: Contents) -> None:
    if contents.rest:
        message.extra[f"{SOURCE}parts"] = contents.rest


def _calls(given: dict[str, Any], notes: list[str]) -> list[ToolCall]:
    calls = call_list(given.get("tool_calls"), "tool_calls")
    legacy = given.get("function_call")
    read = [read_call(call, notes) for call in (*calls, *(call_list(legacy, "function_call") if legacy else ()))]
    written = given.get("function_calls")
    if isinstance(written, str) and written.strip():
        return [*read, *(call.to_tool_call() for call in read_call_text(written))]
    return [*read, *(read_call(call, notes) for call in call_list(written, "function_calls"))]


def _read_calls(turn: Turn, content: Any, used: set[str | None], notes: list[str]) -> None:
    """A message that is nothing but calls: in its text, or at its top as an item of the Responses API."""
    calls = _calls(turn.given, notes)
    if content is None and not calls:
        calls = [read_call({key: value for key, value in turn.given.items() if key not in used}, notes)]
        used.update(turn.given)
    elif content is not None:
        calls += calls_of_message(content, notes)
    turn.message.tool_calls = calls
    turn.message.reasoning = field_reasoning(turn.given, "", turn.message.extra, notes)
    used.update(FIELDS)


def _thought(turn: Turn, notes: list[str]) -> Iterator[Turn]:
    """An item that is reasoning alone. A summary of it or its encrypted form is no trace: counted, not trained."""
    contents = read_parts([turn.given], FlagNames(read=False), None, notes)
    held = turn.given.get("content")
    texts = read_parts(held, FlagNames(read=False), None, notes).thoughts if isinstance(held, list) else []
    turn.message.reasoning = contents.reasoning or "".join(texts) or None
    if turn.given.get("summary") or turn.given.get("encrypted_content"):
        notes.append("reasoning_summary_left_out")
    if turn.message.reasoning is not None:
        yield turn


def _read_result(
    turn: Turn, content: Any, form: MessageForm, used: set[str | None], notes: list[str]
) -> Iterator[Turn]:
    message, given = turn.message, turn.given
    message.role = "tool"
    if content is None and turn.given.get("type") in ITEM_TYPES:
        content = given.get("output")
        used |= {"output", "type"}
    key = next((name for name in _RESULT_IDS if identifier(given.get(name)) is not None), None)
    message.tool_call_id = identifier(given.get(key)) if key is not None else None
    used.add(key)
    if isinstance(content, list) and are_parts(content, strictly=True):
        contents = _parts(content, form, 0, notes)
        if contents.results:
            yield from _results_and_text(turn, contents, form, used, notes)
            return
        _refuse_foreign(contents, "tool")
        message.content = contents.text
        _keep_rest(message, contents)
    else:
        message.content = result_text(content)
    _finish(turn, form, used, notes)
    yield turn


def _read_other(turn: Turn, content: Any, form: MessageForm, used: set[str | None], notes: list[str]) -> Iterator[Turn]:
    """What a user or the system says. Results of tools that stand beside it are messages of their own before it."""
    if turn.message.role in ("system", "developer"):
        turn.functions = turn.given.get("functions")
        used.add("functions")
    if isinstance(content, list):
        contents = _parts(content, form, 0, notes)
        _refuse_foreign(contents, turn.message.role)
        if contents.results:
            yield from _results_and_text(turn, contents, form, used, notes)
            return
        content = contents.text if content else ""
        _keep_rest(turn.message, contents)
    turn.message.content = _text(content)
    _finish(turn, form, used, notes)
    yield turn


def _results_and_text(
    turn: Turn, contents: Contents, form: MessageForm, used: set[str | None], notes: list[str]
) -> Iterator[Turn]:
    for result in contents.results:
        yield Turn(result, "tool", turn.at, {})
    if contents.text is not None and contents.text.strip():
        turn.message.role = turn.kind = "user"
        turn.message.content = contents.text
        _keep_rest(turn.message, contents)
        _finish(turn, form, used, notes)
        yield turn


def _refuse_foreign(contents: Contents, role: str) -> None:
    if contents.thoughts:
        raise RecordError("bad_reasoning", f"is from {role} and holds a thinking part, which only the assistant has")
    if contents.calls:
        raise RecordError("bad_tool_calls", f"is from {role} and holds a call, which only the assistant makes")


def _parts(content: list[Any], form: MessageForm, whole: int | None, notes: list[str]) -> Contents:
    if not are_parts(content):
        raise RecordError("bad_content", "has content that is neither text nor a list of parts")
    return read_parts(content, form.flags, whole, notes)


def _text(content: Any) -> str | None:
    if content is None or isinstance(content, str):
        return content
    raise RecordError("bad_content", "has content that is neither text nor a list of parts")


def _finish(turn: Turn, form: MessageForm, used: set[str | None], notes: list[str]) -> None:
    """Name, marks of earlier stages and all that is not read."""
    message, given = turn.message, turn.given
    is_assistants = message.role == "assistant"
    name = given.get("name")
    message.name = name if isinstance(name, str) and name and "name" not in used else None
    message.mask_reason, message.mask_detail = given.get("mask_reason"), given.get("mask_detail")
    message.effort = effort_of(given, "has") if form.reads_effort else None
    if not is_assistants and any(call_list(given.get(key), key) for key in _CALL_KEYS if given.get(key)):
        raise RecordError("bad_tool_calls", f"has tool calls but is from {message.role}")
    flags = form.flags.all
    for key, value in given.items():
        if key in used or key in _OWN_KEYS:
            if key == "effort" and not form.reads_effort and value is not None:
                message.extra[f"{SOURCE}effort"] = value
            continue
        if key in flags:
            _keep_flag(message, key, value, form, notes)
            continue
        renamed = key in form.role_keys or key in form.content_keys or key in _ROLE_KEYS or key in _CONTENT_KEYS
        if renamed and value is None:
            continue
        message.extra[f"{SOURCE}{key}" if renamed else key] = value
        if key not in _TOOLKIT_KEYS and not key.startswith(SOURCE) and carries_text(value):
            notes.append(f"unread_text: {key}")


def _keep_flag(message: Message, key: str, value: Any, form: MessageForm, notes: list[str]) -> None:
    if not form.flags.read:
        if value is not None:
            message.extra[f"{SOURCE}{key}"] = value
    elif message.role != "assistant" and value:
        if isinstance(value, bool | int | float) or not carries_text(value):
            notes.append(WITHOUT_EFFECT)
        else:
            message.extra[key] = value


def carries_text(value: Any) -> bool:
    """Whether there is text somewhere in a value."""
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, dict):
        return any(carries_text(inner) for inner in value.values())
    return isinstance(value, list) and any(carries_text(inner) for inner in value)


def result_as_text(value: Any) -> str:
    return encode_text(value)
