"""`effort probe`: prompts answered by a model at each level of effort, for a report on whether it obeys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from sft_toolkit.chat.effort_sentences import EffortSentences
from sft_toolkit.conversation import EFFORTS, Conversation, Message
from sft_toolkit.errors import RecordError
from sft_toolkit.stage import Outcome
from sft_toolkit.teachers.prefill import TEMPLATE_VARIABLES, template_variables
from sft_toolkit.teachers.requests import Request
from sft_toolkit.teachers.stage import TeacherStage

PROBE = "effort_probe"
"""Key of a row that says which prompt, level and sample it answers, and whether the reply was cut."""
_SENT_AS_WELL = "reasoning_effort"


@dataclass(frozen=True)
class ProbeStage(TeacherStage):
    """One row per prompt, level and sample: the prompt up to its first question, then the model's reply.

    The prompt states the level as `render` would: by the template's variable `effort`, and by `sentences`.
    """

    samples: int = 1
    sentences: EffortSentences = field(default_factory=EffortSentences)

    name: ClassVar[str] = "effort probe"

    @property
    def draws(self) -> bool:
        return True

    def options(self) -> dict[str, Any]:
        return {**super().options(), "sentences": asdict(self.sentences)}

    def config(self) -> dict[str, Any]:
        return {**super().config(), "sentences": asdict(self.sentences)}

    def requests(self, conversation: Conversation) -> Iterator[Request]:
        """One question per level and sample; none for a record without a question."""
        for _, _, request in self._asked(conversation):
            yield request

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        for conversation in batch:
            if not conversation.exchanges():
                outcome.fault(conversation, RecordError("no_prompt", "no user message to answer"))
                continue
            for level, sample, request in self._asked(conversation):
                row = self._row(conversation, level, sample, request)
                outcome.note("unanswered", row is None)
                if row is not None:
                    yield row

    def _asked(self, conversation: Conversation) -> Iterator[tuple[str, int, Request]]:
        if not conversation.exchanges():
            return
        given = template_variables(self.asking)
        for level in EFFORTS:
            messages = [_plain(message) for message in _prompt(conversation)]
            messages = [*self.sentences.in_prompt(level, [], messages, parts=False), *messages]
            of_level = self.sentences.of_level(level)
            options = {
                TEMPLATE_VARIABLES: {**given, "effort": level, **of_level},
                **{name: value for name, value in of_level.items() if name == _SENT_AS_WELL},
            }
            for sample in range(self.samples):
                tools = conversation.tools
                yield level, sample, Request(messages, sample, None, tools, options, record=conversation.id)

    def _row(self, conversation: Conversation, level: str, sample: int, request: Request) -> Conversation | None:
        reply = self.reply(request)
        if reply is None or reply.refusal:
            return None
        prompt = [replace(message) for message in _prompt(conversation)]
        opens = conversation.exchanges()[0].start
        prompt[opens].effort = level
        answer = Message("assistant", reply.content or None, reply.reasoning or None, reply.tool_calls)
        probe = {"prompt": conversation.id, "level": level, "sample": sample, "cut": reply.is_cut}
        return replace(
            conversation,
            id=f"{conversation.id}:{level}:{sample}",
            messages=[*prompt, answer],
            effort=level,
            provenance=[*conversation.provenance, self.stamp],
            extra={PROBE: probe},
        )


def _prompt(conversation: Conversation) -> list[Message]:
    """The messages up to the end of the first question."""
    start = conversation.exchanges()[0].start
    messages = conversation.messages
    end = next((i for i in range(start, len(messages)) if messages[i].role != "user"), len(messages))
    return messages[:end]


def _plain(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": message.text}
