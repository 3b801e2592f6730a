"""`mask`: take clearly wrong tool calls out of the loss and leave them in the context."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

from sft_toolkit.choices import Policy, RepeatRule
from sft_toolkit.conversation import Conversation
from sft_toolkit.stage import Outcome, Stage
from sft_toolkit.stages.loops import note_loops, reject_loops
from sft_toolkit.stages.shortcuts import SHORTCUT, ShortcutRule, note_shortcuts
from sft_toolkit.tool_calls.judge import Judge
from sft_toolkit.tool_calls.results import compile_patterns


@dataclass(frozen=True)
class MaskStage(Stage):
    """Sets `weight` 0, `mask_reason` and `mask_detail` on assistant turns with a bad call; no weight is ever raised.

    With `loops`, text that repeats itself is noted, or its record rejected; `shortcuts` are rules on calls that fetch
    an answer, each with its own action. Raises UsageError where a pattern is not a
    regular expression.
    """

    repeats: RepeatRule = "default"
    failure_patterns: tuple[str, ...] = ()
    unknown_tool_patterns: tuple[str, ...] = ()
    invalid_arguments_patterns: tuple[str, ...] = ()
    known_tools: tuple[str, ...] = ()
    allow_extra_arguments: bool = False
    loops: Policy | None = None
    shortcuts: tuple[ShortcutRule, ...] = ()

    name: ClassVar[str] = "mask"

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._judge

    @cached_property
    def _judge(self) -> Judge:
        return Judge(
            repeats=self.repeats,
            failure=compile_patterns("failure_patterns", self.failure_patterns),
            unknown_tool=compile_patterns("unknown_tool_patterns", self.unknown_tool_patterns),
            invalid_arguments=compile_patterns("invalid_arguments_patterns", self.invalid_arguments_patterns),
            known_tools=compile_patterns("known_tools", self.known_tools),
            allow_extra_arguments=self.allow_extra_arguments,
        )

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        masked = self.each(batch, outcome, partial(self._mask, outcome))
        yield from reject_loops(self._without_shortcuts(masked, outcome), outcome, self.loops)

    def _without_shortcuts(self, masked: Iterator[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        for conversation in masked:
            rejecting = note_shortcuts(conversation, self.shortcuts, outcome) if self.shortcuts else []
            if rejecting:
                outcome.drop(conversation, SHORTCUT, ", ".join(rejecting), partner=())
            else:
                yield conversation

    def _mask(self, outcome: Outcome, conversation: Conversation) -> Conversation:
        judgement = self._judge.judge(conversation)
        for verdict in judgement.verdicts:
            message = conversation.messages[verdict.turn]
            message.weight = 0
            message.mask_reason = verdict.fault.reason
            message.mask_detail = verdict.fault.detail
        for name, count in judgement.notes.items():
            outcome.note(name, count)
        if self.loops:
            note_loops(conversation, outcome)
        return conversation
