"""`verify`: keep backfilled reasoning only where a second model derives the same tool call from it alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from sft_toolkit.choices import AnswerForm, Mismatch
from sft_toolkit.conversation import Conversation, Message, ToolCall
from sft_toolkit.stage import Outcome
from sft_toolkit.stages.backfill import BACKFILL
from sft_toolkit.stages.language import VERDICT
from sft_toolkit.teachers.call_answers import NATIVE, call_request, read_calls
from sft_toolkit.teachers.leaks import leak_in
from sft_toolkit.teachers.replies import Reply
from sft_toolkit.teachers.requests import Request
from sft_toolkit.teachers.stage import TeacherStage
from sft_toolkit.tool_calls import same_call, same_calls
from sft_toolkit.tool_calls.compare import difference

VERIFY = "verify"
STRIP: Final = "strip"
QUARANTINE: Final = "quarantine"
AGREES, DIFFERS, LEAK = "agrees", "differs", "leak"


@dataclass(frozen=True)
class VerifyStage(TeacherStage):
    """Asks `votes` times per turn; more than half of the votes must derive the turn's calls.

    Where they do not, the reasoning is removed and the turn stays as it was (`strip`), or the record is rejected
    (`quarantine`, as in the report). Reasoning that gives the call away fails unasked: the checker would only copy it.
    A turn whose missing or unusable votes could decide otherwise rejects its record. Only reasoning that `backfill`
    wrote is checked, unless `every_turn`. Raises UsageError for an unknown form or policy.
    """

    votes: int = 1
    form: AnswerForm = NATIVE
    mismatch: Mismatch = STRIP
    every_turn: bool = False

    name: ClassVar[str] = "verify"

    def requests(self, conversation: Conversation) -> Iterator[Request]:
        for message in self._turns(conversation):
            if leak_in(message.reasoning or "", message.tool_calls) is None:
                yield from self._questions(conversation, message)

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        for conversation in self.each(batch, outcome, self._check):
            turns = self._turns(conversation)
            undecided = next((message for message in turns if VERIFY not in message.extra), None)
            if undecided is not None:
                outcome.drop(conversation, "no_answer", self._why_undecided(conversation, undecided))
                continue
            failed = [message for message in turns if not _agreed(message)]
            for message in turns:
                self._count(outcome, message)
            if failed and self.mismatch == QUARANTINE:
                reason = LEAK if LEAK in failed[0].extra[VERIFY] else "call_not_derived"
                outcome.drop(conversation, reason, _sentence(failed[0]))
                continue
            for message in failed:
                message.reasoning = None
                message.extra.pop(BACKFILL, None)
                message.extra.pop(VERDICT, None)
            yield conversation

    def _check(self, conversation: Conversation) -> Conversation:
        for message in self._turns(conversation):
            leak = leak_in(message.reasoning or "", message.tool_calls)
            if leak is not None:
                message.extra[VERIFY] = {LEAK: leak}
                continue
            answers = self._answers(conversation, message)
            usable = [reply for reply in answers if reply is not None and _is_usable(reply)]
            derived = [read_calls(reply, conversation.tools) or [] for reply in usable]
            verdict = self._verdict(message, derived, conversation)
            missing = self.votes - len(derived)
            if (
                missing == 0
                or _is_majority(verdict)
                or not _is_majority({**verdict, "agree": verdict["agree"] + missing})
            ):
                message.extra[VERIFY] = verdict
        return conversation

    def _answers(self, conversation: Conversation, message: Message) -> list[Reply | None]:
        return [self.reply(question) for question in self._questions(conversation, message)]

    def _why_undecided(self, conversation: Conversation, message: Message) -> str:
        replies = self._answers(conversation, message)
        refusal = next((reply.refusal for reply in replies if reply is not None and reply.refusal), None)
        if None in replies:
            return "the checker gave no usable reply; the same command asks again"
        return f"the checker refused: {refusal}" if refusal else "the checker's reply ended at the limit of tokens"

    def _verdict(self, message: Message, derived: list[list[ToolCall]], conversation: Conversation) -> dict[str, Any]:
        wrong = [calls for calls in derived if not same_calls(calls, message.tool_calls, conversation.tools)]
        verdict = {"model": self.asking.model, "votes": self.votes, "agree": len(derived) - len(wrong)}
        if wrong:
            paths = {path for calls in wrong for path in _differing(message.tool_calls, calls, conversation.tools)}
            verdict["differs_at"] = sorted(paths)
        return verdict

    def _count(self, outcome: Outcome, message: Message) -> None:
        label = LEAK if LEAK in message.extra[VERIFY] else AGREES if _agreed(message) else DIFFERS
        for name in sorted({call.name for call in message.tool_calls}):
            outcome.split(name, label)
            for path in message.extra[VERIFY].get("differs_at", ()) if label == DIFFERS else ():
                outcome.split(name, path)
        outcome.note(f"turns: {label}")

    def _turns(self, conversation: Conversation) -> list[Message]:
        return [
            message
            for message in conversation.messages
            if message.tool_calls and message.reasoning and (self.every_turn or BACKFILL in message.extra)
        ]

    def _questions(self, conversation: Conversation, message: Message) -> list[Request]:
        reasoning, tools = message.reasoning or "", conversation.tools
        asked = [call_request(reasoning, tools, self.form, sample) for sample in range(self.votes)]
        return [replace(request, record=conversation.id) for request in asked]


def _agreed(message: Message) -> bool:
    return LEAK not in message.extra[VERIFY] and _is_majority(message.extra[VERIFY])


def _is_majority(verdict: dict[str, Any]) -> bool:
    return bool(verdict["agree"] * 2 > verdict["votes"])


def _is_usable(reply: Reply) -> bool:
    return reply.refusal is None and not reply.is_cut


def _differing(wanted: list[ToolCall], derived: list[ToolCall], tools: list[dict[str, Any]]) -> Iterator[str]:
    """Where derived calls differ from the wanted ones: equal ones pair first, others with those they resemble most."""
    left = list(derived)
    unmatched = []
    for call in wanted:
        same = next((other for other in left if same_call(call, other, tools)), None)
        if same is None:
            unmatched.append(call)
        else:
            left.remove(same)
    for call in unmatched:
        if not left:
            yield "missing call"
            continue
        closest = min(left, key=lambda other: _distance(difference(call, other, tools)))
        left.remove(closest)
        yield from difference(call, closest, tools)
    if left:
        yield "extra call"


def _distance(paths: list[str]) -> tuple[bool, int]:
    return "/name" in paths, len(paths)


def _sentence(message: Message) -> str:
    verdict = message.extra[VERIFY]
    if LEAK in verdict:
        return f"the reasoning holds {verdict[LEAK]}"
    return f"{verdict['agree']} of {verdict['votes']} votes derive the call; others differ at {verdict['differs_at']}"
