"""`language`: does the reasoning of existing traces stay in its language, and does it read like a translation?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from sft_toolkit.choices import Policy
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.labelers.identifier import accepted_labels
from sft_toolkit.labelers.language import Consistency, judge_language
from sft_toolkit.labelers.translation_artefacts import find_artefacts
from sft_toolkit.stage import Outcome, Stage
from sft_toolkit.stages.loops import NOTE, REJECT, note_loops, reject_loops

VERDICT = "language_verdict"
ARTEFACT = "translation_artefact"
STAYS, DRIFTS, UNDECIDED = "stays", "drifts", "undecided"
_SHOWN_CHARACTERS = 200
_SHARE_DIGITS = 4


@dataclass(frozen=True)
class LanguageStage(Stage):
    """Records a verdict on each assistant message with reasoning; with `drop`, rejects records that drift.

    With `loops`, text that repeats itself is noted, or its record rejected; `artefacts` decides the same of records
    with marks of translation, which are always noted. Raises UsageError for a language that the model does not know.
    """

    language: str = "de"
    drop: bool = False
    loops: Policy | None = None
    artefacts: Policy = NOTE

    name: ClassVar[str] = "language"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_language(self.language)

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        judged = self.each(batch, outcome, partial(self._judge, outcome))
        for conversation in reject_loops(judged, outcome, self.loops):
            drift = next(_drifts(conversation), None) if self.drop else None
            artefact = next(_artefacts(conversation), None) if self.artefacts == REJECT else None
            if drift is not None:
                outcome.drop(conversation, "drift", drift)
            elif artefact is not None:
                outcome.drop(conversation, ARTEFACT, artefact)
            else:
                yield conversation

    def _judge(self, outcome: Outcome, conversation: Conversation) -> Conversation:
        if self.loops:
            note_loops(conversation, outcome)
        prompts: list[str] = []
        for message in conversation.messages:
            if message.role != "assistant":
                prompts.append(message.text)
            elif message.reasoning:
                verdict = verdict_record(message.reasoning, self.language, "\n".join(prompts))
                message.extra[VERDICT] = verdict
                count_verdict(outcome, verdict, conversation.dataset or "all")
        return conversation


def require_language(language: str) -> None:
    """Raise UsageError for a language that is not supported, ToolkitError where the model of languages is missing."""
    try:
        accepted_labels(language)
    except ValueError as fault:
        raise UsageError(f"`language` {fault}") from fault
    except FileNotFoundError as fault:
        problem, _, remedy = str(fault).partition("; ")
        raise ToolkitError(problem, remedy) from fault


def verdict_record(reasoning: str, language: str, prompt: str) -> dict[str, Any]:
    """The verdict as a record keeps it; `offending` is the first stretch in another language."""
    verdict = judge_language(reasoning, language, prompt)
    record: dict[str, Any] = {"language": language, "stays": verdict.stays, "judged": verdict.judged}
    if verdict.share is not None:
        record["share"] = round(verdict.share, _SHARE_DIGITS)
    if verdict.offending is not None:
        record["offending"] = _offending(reasoning, verdict)
    if language == "de":
        found = find_artefacts(reasoning)
        if found:
            record["artefacts"] = [{"kind": each.kind, "text": reasoning[each.start : each.end]} for each in found]
    return record


def count_verdict(outcome: Outcome, verdict: dict[str, Any], *groups: str) -> None:
    """Count what was judged in each of the groups that the trace belongs to, and the marks of translation once."""
    label = {True: STAYS, False: DRIFTS, None: UNDECIDED}[verdict["stays"]]
    for group in groups:
        outcome.split(group, label)
    for artefact in verdict.get("artefacts", ()):
        outcome.note(f"artefact: {artefact['kind']}")


def offence(verdict: dict[str, Any]) -> str:
    """The sentence for a person on a verdict that is negative."""
    offending = verdict["offending"]
    return f"not {verdict['language']} but {offending['language']}: {offending['text']}"


def _drifts(conversation: Conversation) -> Iterator[str]:
    for message in conversation.messages:
        verdict = message.extra.get(VERDICT)
        if verdict is not None and verdict["stays"] is False:
            yield offence(verdict)


def _artefacts(conversation: Conversation) -> Iterator[str]:
    for message in conversation.messages:
        for artefact in message.extra.get(VERDICT, {}).get("artefacts", ()):
            yield f"{artefact['kind']}: {artefact['text']}"


def _offending(reasoning: str, verdict: Consistency) -> dict[str, Any]:
    stretch = verdict.offending
    assert stretch is not None
    text = reasoning[stretch.start : stretch.end][:_SHOWN_CHARACTERS]
    return {"text": text, "start": stretch.start, "language": stretch.language}
