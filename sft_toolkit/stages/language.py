"""`language`: does the reasoning of existing traces stay in its language, and does it read like a translation?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import UsageError
from sft_toolkit.labelers.language import Consistency, accepted_labels, judge_language
from sft_toolkit.labelers.translation_artefacts import find_artefacts
from sft_toolkit.stage import Outcome, Stage

VERDICT = "language_verdict"
STAYS, DRIFTS, UNDECIDED = "stays", "drifts", "undecided"
_SHOWN_CHARACTERS = 200
_SHARE_DIGITS = 4


@dataclass(frozen=True)
class LanguageStage(Stage):
    """Records a verdict on each assistant message with reasoning; with `drop`, rejects records that drift.

    Raises UsageError for a language that the model does not know.
    """

    language: str = "de"
    drop: bool = False

    name: ClassVar[str] = "language"

    def __post_init__(self) -> None:
        require_language(self.language)

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        for conversation in self.each(batch, outcome, partial(self._judge, outcome)):
            drift = next(_drifts(conversation), None) if self.drop else None
            if drift is None:
                yield conversation
            else:
                outcome.drop(conversation, "drift", drift)

    def _judge(self, outcome: Outcome, conversation: Conversation) -> Conversation:
        prompts: list[str] = []
        for message in conversation.messages:
            if message.role != "assistant":
                prompts.append(message.text)
            elif message.reasoning:
                verdict = verdict_record(message.reasoning, self.language, "\n".join(prompts))
                message.extra[VERDICT] = verdict
                count_verdict(outcome, conversation.dataset or "all", verdict)
        return conversation


def require_language(language: str) -> None:
    """Raise UsageError for a language that is not supported."""
    try:
        accepted_labels(language)
    except ValueError as fault:
        raise UsageError(f"--language {fault}") from fault


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


def count_verdict(outcome: Outcome, group: str, verdict: dict[str, Any]) -> None:
    """Count what was judged in `group`, and the marks of translation."""
    label = {True: STAYS, False: DRIFTS, None: UNDECIDED}[verdict["stays"]]
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


def _offending(reasoning: str, verdict: Consistency) -> dict[str, Any]:
    stretch = verdict.offending
    assert stretch is not None
    text = reasoning[stretch.start : stretch.end][:_SHOWN_CHARACTERS]
    return {"text": text, "start": stretch.start, "language": stretch.language}
