"""`distill`: traces of a teacher whose thinking is opened in the target language (report, section on distillation)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from sft_toolkit.conversation import Conversation, Message
from sft_toolkit.errors import RecordError, UsageError
from sft_toolkit.stage import Outcome
from sft_toolkit.stages.language import VERDICT, count_verdict, offence, require_language, verdict_record
from sft_toolkit.stages.language_report import BY_DOMAIN, BY_OPENER
from sft_toolkit.stages.loops import LOOP, REPETITIVE, loop_record, loop_sentence
from sft_toolkit.teachers.openers import Openers
from sft_toolkit.teachers.prefill import NONE
from sft_toolkit.teachers.replies import Reply
from sft_toolkit.teachers.requests import Request
from sft_toolkit.teachers.stage import TeacherStage
from sft_toolkit.teachers.traces import CLASSES, MAY_LOOP, OK, classify

WITH_OPENER, WITHOUT_OPENER = "with opener", "without opener"
_INSTRUCTIONS = {
    "de": "Denke ausschließlich auf Deutsch nach und antworte auf Deutsch.",
    "en": "Think in English only, and answer in English.",
}


@dataclass(frozen=True)
class DistillStage(TeacherStage):
    """One row per prompt and sample: the prompt, then the teacher's reasoning and answer.

    `instruction` joins the system prompt of the question and is not kept. With `compare`, every second sample goes
    without an opener. Rows of the classes in `keep` are kept, others are rejected. Raises UsageError for an unknown
    language or class, and for a comparison that cannot be made.
    """

    openers: Openers
    instruction: str
    language: str = "de"
    samples: int = 1
    compare: bool = False
    min_words: int = 5
    keep: tuple[str, ...] = (OK,)

    name: ClassVar[str] = "distill"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_language(self.language)
        unknown = sorted(set(self.keep) - set(CLASSES))
        if unknown:
            raise UsageError(f"`keep` {unknown[0]}: unknown", f"the classes are {', '.join(CLASSES)}")
        if self.compare and self.samples % 2:
            raise UsageError(f"`compare` with `samples` {self.samples}: no halves", "give an even number of samples")
        if self.compare and self.asking.prefill == NONE:
            raise UsageError("`compare` compares with an opener, and `prefill=none` sends none")

    @property
    def draws(self) -> bool:
        return True

    def config(self) -> dict[str, Any]:
        return {**super().config(), "instruction": self.instruction, "openers": self.openers.digest}

    def options(self) -> dict[str, Any]:
        return {**super().options(), "openers": self.openers.digest}

    def outgrown(self) -> Iterator[TeacherStage]:
        """The stage with fewer samples."""
        step = 2 if self.compare else 1
        return (replace(self, samples=fewer) for fewer in range(self.samples - step, 0, -step))

    def requests(self, conversation: Conversation) -> Iterator[Request]:
        """One question per sample; none for a record without a prompt."""
        prompt = _prompt(conversation)
        if prompt:
            messages = self._instructed(prompt)
            for sample in range(self.samples):
                opener = self._opener(conversation, sample)
                yield Request(messages, sample, opener, conversation.tools, record=conversation.id)

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        for conversation in batch:
            if not _prompt(conversation):
                outcome.fault(conversation, RecordError("no_prompt", "no user message to answer"))
                continue
            for request in self.requests(conversation):
                row = self._judged(conversation, request, outcome)
                if row is not None:
                    row.provenance.append(self.stamp)
                    yield row

    def _judged(self, conversation: Conversation, request: Request, outcome: Outcome) -> Conversation | None:
        reply = self.reply(request)
        kind, detail = classify(reply, request.opener, self.min_words)
        row = self._row(conversation, request, reply)
        answer = row.messages[-1]
        loop = loop_record(answer)
        if loop is not None:
            answer.extra[LOOP] = loop
            if kind in MAY_LOOP:
                kind, detail = REPETITIVE, loop_sentence(answer)
        if answer.reasoning:
            verdict = verdict_record(answer.reasoning, self.language, _text_of(request.messages))
            answer.extra[VERDICT] = verdict
            count_verdict(outcome, verdict, *self._groups(conversation, request))
            if kind == OK and verdict["stays"] is False:
                kind, detail = "drift", offence(verdict)
        row.extra["trace"]["class"] = kind
        if kind in self.keep:
            outcome.note(f"class: {kind}")
            return row
        outcome.drop(row, kind, detail)
        return None

    def _groups(self, conversation: Conversation, request: Request) -> Iterator[str]:
        """Whose rate of traces that stay in the language this one counts for."""
        half = WITH_OPENER if request.opener else WITHOUT_OPENER
        yield half
        if self.compare:
            yield f"{BY_DOMAIN}{conversation.domain or 'none'}, {half}"
            if request.opener:
                yield f"{BY_OPENER}{request.opener}"

    def _row(self, conversation: Conversation, request: Request, reply: Reply | None) -> Conversation:
        reply = reply or Reply()
        answer = Message(
            "assistant", reply.content or None, reasoning=reply.reasoning or None, tool_calls=reply.tool_calls
        )
        trace = {
            "model": self.asking.model,
            "sample": request.sample,
            "opener": request.opener or None,
            "finish_reason": reply.finish,
        }
        return replace(
            conversation,
            id=conversation.id if self.samples == 1 else f"{conversation.id}:{request.sample}",
            messages=[*copy.deepcopy(_prompt(conversation)), answer],
            provenance=list(conversation.provenance),
            extra={**conversation.extra, "trace": trace},
        )

    def _instructed(self, prompt: list[Message]) -> list[dict[str, Any]]:
        opened = max(index for index, message in enumerate(prompt) if message.role == "user")
        messages = [_plain(message, with_reasoning=index > opened) for index, message in enumerate(prompt)]
        if not self.instruction:
            return messages
        if prompt[0].role != "system":
            return [{"role": "system", "content": self.instruction}, *messages]
        return [{**messages[0], "content": f"{prompt[0].text}\n\n{self.instruction}"}, *messages[1:]]

    def _opener(self, conversation: Conversation, sample: int) -> str | None:
        """The sample's opener; in a comparison, "" for every second one: the same open block without words."""
        if self.asking.prefill == NONE:
            return None
        if self.compare and sample % 2:
            return ""
        return self.openers.draw(self.asking.seed, conversation.id, sample, conversation.domain)


def instruction_for(language: str) -> str:
    """What the system prompt asks of the teacher, unless the user words it."""
    return _INSTRUCTIONS.get(language, f"Think only in the language with the ISO 639-1 code {language}; answer in it.")


def _prompt(conversation: Conversation) -> list[Message]:
    """The messages up to the last that is not the assistant's; none where no user has spoken."""
    messages = conversation.messages
    end = max((index + 1 for index, message in enumerate(messages) if message.role != "assistant"), default=0)
    return messages[:end] if any(message.role == "user" for message in messages[:end]) else []


def _plain(message: Message, with_reasoning: bool) -> dict[str, Any]:
    """The message as a teacher takes it: without the toolkit's labels, and without the reasoning of earlier exchanges.

    That of an exchange whose tools have answered and that goes on is the teacher's own to continue from; some refuse a
    question without it.
    """
    record = message.to_record()
    names = ("role", "content", "tool_calls", "tool_call_id", *(["reasoning"] if with_reasoning else []))
    return {name: record[name] for name in names if name in record}


def _text_of(messages: list[dict[str, Any]]) -> str:
    return "\n".join(message["content"] for message in messages if isinstance(message.get("content"), str))
