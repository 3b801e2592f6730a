"""Calls that fetch the answer of a task in place of working it out, found by rules of the user or the packaged ones."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from sft_toolkit.choices import require_choices
from sft_toolkit.conversation import Conversation, Message, ToolCall
from sft_toolkit.errors import UsageError
from sft_toolkit.json_text import encode_text
from sft_toolkit.stage import Outcome

SHORTCUT: Final = "shortcut"
"""The key of a message on which rules hold, the reason of a masked turn and that of a rejected record."""
PACKAGED: Final = "packaged"
_PATTERNS = ("tool", "arguments", "result")


@dataclass(frozen=True)
class ShortcutRule:
    """`tool`, `arguments`, `result`: patterns, "" for any; all must be found. Raises UsageError for a bad one."""

    name: str
    tool: str = ""
    arguments: str = ""
    result: str = ""
    action: Literal["note", "mask", "reject"] = "note"

    def __post_init__(self) -> None:
        require_choices(self)
        for part in _PATTERNS:
            try:
                _compiled(getattr(self, part))
            except re.error as fault:
                raise UsageError(f"`shortcuts` rule {self.name}: {part} is no regular expression: {fault}") from fault
        if not any(getattr(self, part) for part in _PATTERNS):
            raise UsageError(f"`shortcuts` rule {self.name}: has no pattern", f"give one of {', '.join(_PATTERNS)}")

    def holds(self, call: ToolCall, result: Message | None) -> bool:
        return (
            _found(self.tool, call.name)
            and _found(self.arguments, "\n".join(_texts(call.arguments)))
            and _found(self.result, "" if result is None else result.text)
        )


def read_rules(path: str) -> tuple[ShortcutRule, ...]:
    """The rules of a TOML file, tables `rules`, or the packaged ones. Raises UsageError where it holds none."""
    file = Path(__file__).with_name("shortcuts.toml") if path == PACKAGED else Path(path)
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8")).get("rules")
    except OSError as fault:
        raise UsageError(f"`shortcuts` {path}: {fault.strerror}", f"name a TOML file, or {PACKAGED}") from fault
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise UsageError(f"`shortcuts` {path}: not TOML: {fault}") from fault
    if not isinstance(given, list) or not given:
        raise UsageError(f"`shortcuts` {path}: no rules", "write tables [[rules]]")
    return tuple(_rule(path, number, entry) for number, entry in enumerate(given, 1))


def _rule(path: str, number: int, entry: Any) -> ShortcutRule:
    known = {each.name for each in fields(ShortcutRule)}
    unknown = sorted(entry.keys() - known) if isinstance(entry, dict) else []
    if unknown or not isinstance(entry, dict) or not all(isinstance(value, str) for value in entry.values()):
        fault = f"unknown key {unknown[0]}" if unknown else "not a table of texts"
        raise UsageError(f"`shortcuts` {path}: rule {number}: {fault}", f"keys are {', '.join(sorted(known))}")
    return ShortcutRule(**{"name": f"rule_{number}", **entry})


def note_shortcuts(conversation: Conversation, rules: tuple[ShortcutRule, ...], outcome: Outcome) -> list[str]:
    """Write the names of the rules that hold on each assistant message, mask where a rule says so.

    Returns the names of those that reject the record.
    """
    rejecting = []
    for turn, message in enumerate(conversation.messages):
        held = [rule for rule in rules if any(rule.holds(*pair) for pair in _answered(conversation, turn))]
        if not held:
            continue
        message.extra[SHORTCUT] = [rule.name for rule in held]
        for rule in held:
            outcome.note(f"shortcut: {rule.name}")
        masking = [rule.name for rule in held if rule.action == "mask"]
        if masking and message.weight != 0:
            message.weight, message.mask_reason, message.mask_detail = 0, SHORTCUT, ", ".join(masking)
            outcome.note("masked_shortcut")
        rejecting += [rule.name for rule in held if rule.action == "reject"]
    return list(dict.fromkeys(rejecting))


def _answered(conversation: Conversation, turn: int) -> Iterator[tuple[ToolCall, Message | None]]:
    """The calls of a turn, each with its result: that of its id, else the one in its place."""
    results = []
    for message in conversation.messages[turn + 1 :]:
        if message.role != "tool":
            break
        results.append(message)
    by_id = {message.tool_call_id: message for message in results if message.tool_call_id is not None}
    for place, call in enumerate(conversation.messages[turn].tool_calls):
        in_place = results[place] if place < len(results) else None
        yield call, by_id.get(call.id, in_place) if call.id is not None else in_place


def _texts(value: Any) -> Iterator[str]:
    """The texts inside arguments, as the tool reads them; other values as JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
    else:
        yield encode_text(value)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _found(pattern: str, text: str) -> bool:
    return not pattern or _compiled(pattern).search(text) is not None
