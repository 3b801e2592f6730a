"""Content in parts, as the APIs of OpenAI, Anthropic, Google, Amazon and Mistral write it.

Texts are joined with nothing between them. Parts that call a tool, that answer a call or that hold reasoning are taken
apart; pictures, sound, video and parts of an unknown kind are refused by name. What else a part holds (a signature, an
annotation) is kept beside the message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from sft_toolkit.conversation import Message, ToolCall
from sft_toolkit.errors import RecordError
from sft_toolkit.formats.calls import read_call
from sft_toolkit.formats.loss_flags import FlagNames, lowest_flag
from sft_toolkit.formats.refusals import map_line, shown
from sft_toolkit.formats.tool_results import (
    BARE_TEXT_KEYS,
    MEDIA_KEYS,
    TEXT_TYPES,
    held_in,
    refuse_media,
    result_message,
)

_WEIGHT = "weight"
_THOUGHT_TYPES = ("thinking", "reasoning", "reasoning_text")
_TEXT_KEYS = ("text", "thinking", "reasoning", "reasoning_content", "reasoning_text")


@dataclass(slots=True)
class Contents:
    """What the parts of one message hold. `flags` has the loss flag of each text part, `rest` what was not read."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[Message] = field(default_factory=list)
    flags: list[int | None] = field(default_factory=list)
    rest: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def text(self) -> str | None:
        return "".join(self.texts) if self.texts else None

    @property
    def flag(self) -> int | None:
        """What all parts agree on; None where they differ, or say nothing."""
        return 0 if self.flags and not any(flag != 0 for flag in self.flags) else None

    @property
    def loss_spans(self) -> list[dict[str, Any]]:
        """Where the parts differ: the stretches of `text` that carry no loss."""
        if self.flag == 0 or 0 not in self.flags:
            return []
        ends = list(accumulate(map(len, self.texts)))
        places = zip(self.flags, [0, *ends], ends, strict=False)
        return [{"begin": begin, "end": end, "weight": 0} for flag, begin, end in places if flag == 0 and begin < end]

    @property
    def reasoning(self) -> str:
        return "".join(self.thoughts)


def are_parts(content: list[Any], strictly: bool = False) -> bool:
    """Whether a list is content in parts; `strictly` where it may as well be any list, as a tool's result may."""
    if not content:
        return not strictly
    return all(isinstance(part, str) or _is_part(part, strictly) for part in content) and not (
        strictly and all(isinstance(part, str) for part in content)
    )


def _is_part(part: Any, strictly: bool) -> bool:
    if not isinstance(part, dict):
        return False
    kind = part.get("type")
    if strictly:
        known = isinstance(kind, str) and (kind in _READERS or kind in MEDIA_KEYS)
        bare = isinstance(part.get("text"), str) and held_in(part).keys() <= BARE_TEXT_KEYS
        return known or bare or _key_of(part) in ("toolResult", "functionResponse")
    return isinstance(kind, str) or _key_of(part) is not None or not MEDIA_KEYS.isdisjoint(part)


def read_parts(content: list[Any], flags: FlagNames, whole: int | None, notes: list[str]) -> Contents:
    """Take the parts of a message apart. `whole` is the flag of the message: under 0 those of its parts say no more.

    Raises RecordError for a part that is no text, and where parts differ in a flag that is not `weight`.
    """
    found = Contents(notes=notes)
    for part in content:
        if isinstance(part, str):
            found.texts.append(part)
            found.flags.append(None)
        else:
            _read_part(part, found, flags, whole)
    if found.loss_spans:
        _require_weights(content, flags)
    return found


def _require_weights(content: list[Any], flags: FlagNames) -> None:
    """Raises RecordError where stretches are left out by the flags of other trainers, which may mean something else."""
    parts = [part for part in content if isinstance(part, dict)]
    other = next((name for part in parts for name in part if name in flags.all and name != _WEIGHT), None)
    if other is not None:
        raise RecordError(
            "bad_weight",
            f"has parts whose loss flags ({other}) differ",
            f"write {_WEIGHT} in their place to leave stretches out, or leave flags unread: {map_line('weight')}",
        )


def _read_part(part: dict[str, Any], found: Contents, flags: FlagNames, whole: int | None) -> None:
    kind = part.get("type") if isinstance(part.get("type"), str) else None
    refuse_media(kind, part, "part")
    key = kind if kind in _READERS else _key_of(part) if part.get("type") is None else None
    if key is None:
        detail = f"has a part of type {shown(kind)}, which is not known"
        raise RecordError("unsupported_part", detail, "drop such records")
    texts = len(found.texts)
    used = _READERS[key](part, found)
    if len(found.texts) > texts:
        found.flags.append(None if whole == 0 else lowest_flag(part, flags))
    rest = {name: value for name, value in held_in(part).items() if name not in used and name not in flags.all}
    if rest:
        found.rest.append(rest)


def _key_of(part: dict[str, Any]) -> str | None:
    """The key that says what a part without a known type is."""
    return next((key for key in _KEYED if part.get(key) not in (None, [], {})), None)


def _read_text(part: dict[str, Any], found: Contents) -> set[str]:
    text = part.get("text")
    if not isinstance(text, str):
        raise RecordError("bad_content", "has a text part without text")
    if part.get("thought") is True:
        found.thoughts.append(text)
        return {"type", "text", "thought"}
    if found.calls and text.strip():
        hint = "templates write text before calls: split the message"
        raise RecordError("text_after_call", "has text after a call", hint)
    if not found.calls:
        found.texts.append(text)
    return {"type", "text"}


def _read_thought(part: dict[str, Any], found: Contents) -> set[str]:
    for key in (part["type"], *_TEXT_KEYS):
        text = _joined(part.get(key))
        if text is not None:
            found.thoughts.append(text)
            return {"type", key, "closed"}
    summary = part.get("summary") or part.get("content")
    if summary is None and "summary" not in part:
        raise RecordError("bad_reasoning", f"has a part of type {part['type']} that holds no text")
    return {"type"}


def _read_bedrock_thought(part: dict[str, Any], found: Contents) -> set[str]:
    held = part["reasoningContent"]
    inner = held.get("reasoningText") if isinstance(held, dict) else None
    text = inner.get("text") if isinstance(inner, dict) else None
    if not isinstance(text, str):
        return set()
    found.thoughts.append(text)
    if inner is not None and len(held_in(inner)) > 1:
        found.rest.append({key: value for key, value in held_in(inner).items() if key != "text"})
    return {"type", "reasoningContent"}


def _joined(value: Any) -> str | None:
    """Text, or the text parts that stand where text is wanted."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
        texts = [part.get("text") for part in value]
        return "".join(texts) if all(isinstance(text, str) for text in texts) else None
    return None


def _read_encrypted(part: dict[str, Any], found: Contents) -> set[str]:
    found.notes.append("reasoning_encrypted")
    return {"type"}


def _read_call(part: dict[str, Any], found: Contents) -> set[str]:
    """Anthropic's block: the call stands in the part itself."""
    found.calls.append(read_call({key: value for key, value in part.items() if key != "type"}, found.notes))
    return set(part)


def _read_nested_call(key: str) -> Callable[[dict[str, Any], Contents], set[str]]:
    def read(part: dict[str, Any], found: Contents) -> set[str]:
        found.calls.append(read_call(part[key], found.notes))
        return {"type", key}

    return read


def _read_result(part: dict[str, Any], found: Contents) -> set[str]:
    found.results.append(result_message(part, part.get("content"), {"type", "content"}))
    return set(part)


def _read_nested_result(key: str, content: str) -> Callable[[dict[str, Any], Contents], set[str]]:
    def read(part: dict[str, Any], found: Contents) -> set[str]:
        held = part[key]
        if not isinstance(held, dict):
            raise RecordError("bad_content", f"has a {key} that is not an object")
        found.results.append(result_message(held, held.get(content), {content}))
        return {"type", key}

    return read


_READERS: dict[str, Callable[[dict[str, Any], Contents], set[str]]] = {
    **dict.fromkeys(TEXT_TYPES, _read_text),
    **dict.fromkeys(_THOUGHT_TYPES, _read_thought),
    "redacted_thinking": _read_encrypted,
    "tool_use": _read_call,
    "tool_call": _read_call,
    "function_call": _read_call,
    "tool_result": _read_result,
    "toolUse": _read_nested_call("toolUse"),
    "functionCall": _read_nested_call("functionCall"),
    "toolResult": _read_nested_result("toolResult", "content"),
    "functionResponse": _read_nested_result("functionResponse", "response"),
    "reasoningContent": _read_bedrock_thought,
}
# Parts without a type say by one of these keys what they are.
_KEYED = ("toolUse", "functionCall", "toolResult", "functionResponse", "reasoningContent", "text")
