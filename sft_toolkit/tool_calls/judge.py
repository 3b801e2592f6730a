"""Which tool calls of a conversation a model should see but not learn (Kolibri report, loss masking of bad calls)."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal

from sft_toolkit.choices import RepeatRule
from sft_toolkit.conversation import Conversation, Message, ToolCall
from sft_toolkit.tool_calls.compare import canonical_arguments
from sft_toolkit.tool_calls.results import (
    INVALID_ARGUMENTS_CODE,
    UNKNOWN_TOOL_CODE,
    Patterns,
    begins_with,
    carries_code,
    failed,
    pair_results,
)
from sft_toolkit.tool_calls.schema import BrokenSchema, Tool, compile_tools
from sft_toolkit.tool_calls.subschemas import pointer

Reason = Literal["unknown_tool", "invalid_arguments", "repeat_of_failed_call"]

_DETAIL_LENGTH = 240
_LONGEST_NAME = 200
_NAMES_COMPARED = 1_000


@dataclass(frozen=True, slots=True)
class Fault:
    """Why one call is bad. `path`: JSON pointer into the arguments; `of`: message index of the call repeated."""

    reason: Reason
    detail: str
    path: str | None = None
    suggestion: str | None = None
    of: int | None = None


@dataclass(frozen=True, slots=True)
class BadTurn:
    """A turn to take out of the loss: message index, indexes of its bad calls, and the first one's fault."""

    turn: int
    calls: tuple[int, ...]
    fault: Fault


@dataclass
class Judgement:
    """`notes` counts what was looked at, what could not be decided and what was let pass."""

    verdicts: list[BadTurn] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Judge:
    """The rules, as chosen.

    `repeats`: "default" takes a repeat for bad if it fails again with the same text, "strict" takes every repeat of a
    failed call, "user-round" is the default but forgets failures when the user speaks. `failure`, `unknown_tool` and
    `invalid_arguments` are the environment's own words, matched at the start of a result. `known_tools` match the whole
    names of tools that need no declaration.
    """

    repeats: RepeatRule = "default"
    failure: Patterns = ()
    unknown_tool: Patterns = ()
    invalid_arguments: Patterns = ()
    known_tools: Patterns = ()
    allow_extra_arguments: bool = False

    def judge(self, conversation: Conversation) -> Judgement:
        if not any(message.tool_calls for message in conversation.messages):
            return Judgement()
        return _Hearing(self, conversation).hear()


_Occurrence = tuple[int, Message | None]
"""An earlier call: its message index and its result."""


class _Hearing:
    """One conversation being judged, turn by turn; `latest` remembers the last occurrence of every call."""

    def __init__(self, judge: Judge, conversation: Conversation) -> None:
        self.judge = judge
        self.messages = conversation.messages
        self.tools = compile_tools(conversation.tools)
        self.pairing = pair_results(conversation.messages)
        self.latest: dict[Hashable, _Occurrence] = {}
        self.nearest: dict[str, str | None] = {}
        self.user_spoke_at = -1
        self.verdicts: list[BadTurn] = []
        self.notes: Counter[str] = Counter()

    def hear(self) -> Judgement:
        self.notes["undecidable_no_tools"] += not self.tools
        self.notes["undecidable_unpaired_results"] += self.pairing.unpaired
        for turn, message in enumerate(self.messages):
            if message.role == "user":
                self._hear_user(turn)
            elif message.tool_calls:
                self._hear_calls(turn, message)
        return Judgement(self.verdicts, self.notes)

    def _hear_user(self, turn: int) -> None:
        self.user_spoke_at = turn
        if self.judge.repeats == "user-round":
            self.latest.clear()

    def _hear_calls(self, turn: int, message: Message) -> None:
        """A turn is judged against earlier turns only: parallel calls cannot know of each other's failure."""
        faults: dict[int, Fault] = {}
        occurrences: dict[Hashable, _Occurrence] = {}
        for index, call in enumerate(message.tool_calls):
            tool = self.tools.get(call.name)
            result = self.pairing.results.get((turn, index))
            is_cut_off = message.extra.get("finish_reason") == "length" and index == len(message.tool_calls) - 1
            fault = self._unknown(call, tool, result) or self._invalid(call, tool, result, is_cut_off)
            if call.problem is None:
                key = (call.name, canonical_arguments(call.arguments, tool))
                fault = fault or self._repeated(call, key, result)
                occurrences[key] = (turn, result)
            if fault:
                faults[index] = fault
        self.latest.update(occurrences)
        self.notes["tool_calls"] += len(message.tool_calls)
        if faults:
            self._convict(BadTurn(turn, tuple(faults), next(iter(faults.values()))))

    def _convict(self, verdict: BadTurn) -> None:
        self.verdicts.append(verdict)
        fault = verdict.fault
        self.notes[f"masked_{fault.reason}"] += 1
        if fault.of is not None and self.user_spoke_at > fault.of:
            self.notes["masked_repeat_after_user_message"] += 1

    def _unknown(self, call: ToolCall, tool: Tool | None, result: Message | None) -> Fault | None:
        if self.tools and tool is None and self._is_known(call.name):
            self.notes["undeclared_known_tool"] += 1
        elif self.tools and tool is None:
            suggestion = self._nearest(call.name)
            hint = f"; did you mean {suggestion}?" if suggestion else ""
            return Fault("unknown_tool", _cut(f"{call.name} is not declared{hint}"), suggestion=suggestion)
        return self._reported("unknown_tool", UNKNOWN_TOOL_CODE, self.judge.unknown_tool, result)

    def _is_known(self, name: str) -> bool:
        return any(pattern.fullmatch(name) for pattern in self.judge.known_tools)

    def _nearest(self, name: str) -> str | None:
        if name not in self.nearest:
            self.nearest[name] = _nearest(name, list(self.tools))
        return self.nearest[name]

    def _invalid(self, call: ToolCall, tool: Tool | None, result: Message | None, is_cut_off: bool) -> Fault | None:
        if call.problem:
            return Fault("invalid_arguments", _cut(f"{call.name}: {call.problem}"), path="")
        if is_cut_off:
            return Fault("invalid_arguments", _cut(f"{call.name}: cut off by the length limit"))
        return (tool and self._rejected(call, tool)) or self._answered_badly(call, tool, result)

    def _rejected(self, call: ToolCall, tool: Tool) -> Fault | None:
        self.notes["suspect_schema"] += tool.is_suspect
        try:
            rejection = tool.rejection(call.arguments)
        except BrokenSchema:
            self.notes["undecidable_broken_schema"] += 1
            return None
        if rejection is None:
            return None
        where = f" at {rejection.path}" if rejection.path else ""
        return Fault("invalid_arguments", _cut(f"{call.name}{where}: {rejection.message}"), path=rejection.path)

    def _answered_badly(self, call: ToolCall, tool: Tool | None, result: Message | None) -> Fault | None:
        """What the schema lets pass: the environment may have rejected it, or accepted more than was declared."""
        fault = self._reported("invalid_arguments", INVALID_ARGUMENTS_CODE, self.judge.invalid_arguments, result)
        if fault or tool is None:
            return fault
        undeclared = tool.undeclared(call.arguments)
        if not undeclared:
            return None
        if self.judge.allow_extra_arguments or failed(result, self.judge.failure) is False:
            self.notes["extra_arguments"] += 1
            return None
        path = pointer([undeclared[0]])
        return Fault(
            "invalid_arguments", _cut(f"{call.name} at {path}: the schema declares no such argument"), path=path
        )

    def _reported(self, reason: Reason, code: int, patterns: Patterns, result: Message | None) -> Fault | None:
        if result is None or not (carries_code(result, code) or begins_with(patterns, result)):
            return None
        return Fault(reason, _cut(f"the environment answered: {result.text.strip()}"))

    def _repeated(self, call: ToolCall, key: Hashable, result: Message | None) -> Fault | None:
        if key not in self.latest:
            return None
        turn, previous = self.latest[key]
        if not failed(previous, self.judge.failure):
            return None
        if self.judge.repeats != "strict" and not self._fails_alike(result, previous):
            return None
        return Fault("repeat_of_failed_call", _cut(f"{call.name} repeats message {turn}, which failed"), of=turn)

    def _fails_alike(self, result: Message | None, previous: Message | None) -> bool:
        if result is None or previous is None:
            return False
        return result.text == previous.text and bool(failed(result, self.judge.failure))


def _nearest(name: str, names: list[str]) -> str | None:
    """The declared name that a person most likely meant, if one is near; case does not count."""
    if len(name) > _LONGEST_NAME:
        return None
    by_lower = {known.lower(): known for known in names[:_NAMES_COMPARED] if len(known) <= _LONGEST_NAME}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None


def _cut(detail: str) -> str:
    return detail if len(detail) <= _DETAIL_LENGTH else detail[: _DETAIL_LENGTH - 1] + "…"
