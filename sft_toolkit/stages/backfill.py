"""`backfill`: a teacher writes the reasoning that tool calls of a trace lack (the report on agentic traces)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from sft_toolkit.conversation import Conversation, Message
from sft_toolkit.json_text import encode_text
from sft_toolkit.stage import Outcome
from sft_toolkit.stages.language import VERDICT, count_verdict, require_language, verdict_record
from sft_toolkit.teachers.leaks import leak_in
from sft_toolkit.teachers.replies import Reply
from sft_toolkit.teachers.requests import Request
from sft_toolkit.teachers.stage import TeacherStage
from sft_toolkit.teachers.traces import OK

BACKFILL = "backfill"
_LANGUAGES = {"de": "German", "en": "English", "fr": "French", "es": "Spanish", "it": "Italian"}
_INSTRUCTION = (
    "You are given a conversation between a user and an assistant with tools, and the tool calls that the assistant "
    "makes next. Write the reasoning that leads it to exactly these calls: what is known, what is missing, which tool "
    "helps, and which values its arguments get and why. Name every value in plain words, so that a reader who sees "
    "only your reasoning and the tools could make the same calls. Do not write a call itself: no JSON and no code. "
    "Write in the first person, in {language}, and write nothing but the reasoning."
)


@dataclass(frozen=True)
class BackfillStage(TeacherStage):
    """Gives reasoning to each assistant turn that calls tools and has none; what is no good leaves the turn as it was.

    Raises UsageError for a language that is not supported.
    """

    language: str = "de"
    min_words: int = 5

    name: ClassVar[str] = "backfill"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_language(self.language)

    def requests(self, conversation: Conversation) -> Iterator[Request]:
        for index in turns_to_fill(conversation):
            yield self._request(conversation, index)

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        return self.each(batch, outcome, partial(self._fill, outcome))

    def _fill(self, outcome: Outcome, conversation: Conversation) -> Conversation:
        requests = [(index, self._request(conversation, index)) for index in turns_to_fill(conversation)]
        for index, request in requests:
            message = conversation.messages[index]
            reply = self.reply(request)
            kind = self._judged(reply, message, _said_before(conversation, index), outcome)
            outcome.note(f"turns: {kind}")
            if kind == OK and reply is not None:
                message.reasoning = _written(reply)
                message.extra[BACKFILL] = {"model": self.asking.model}
        return conversation

    def _judged(self, reply: Reply | None, message: Message, prompt: str, outcome: Outcome) -> str:
        """The class of what the teacher wrote for the message's calls."""
        if reply is None:
            return "retry_exhausted"
        if reply.refusal is not None:
            return "refused"
        if reply.misfiled:
            return "parser_misfiled"
        if reply.is_cut:
            return "truncated"
        written = _written(reply)
        if not written:
            return "empty"
        if len(written.split()) < self.min_words:
            return "too_short"
        leak = leak_in(written, message.tool_calls)
        if leak is not None:
            outcome.note(f"leaks: {leak}")
            return "leak"
        verdict = verdict_record(written, self.language, prompt)
        count_verdict(outcome, verdict, "backfilled")
        if verdict["stays"] is False:
            return "drift"
        message.extra[VERDICT] = verdict
        return OK

    def _request(self, conversation: Conversation, index: int) -> Request:
        instruction = _INSTRUCTION.format(language=_LANGUAGES.get(self.language, f"the language {self.language}"))
        calls = [call.to_record()["function"] for call in conversation.messages[index].tool_calls]
        question = "\n\n".join(
            [
                f"Tools:\n{encode_text(conversation.tools)}",
                f"Conversation:\n{_transcript(conversation.messages[:index])}",
                f"Next call:\n{encode_text(calls)}",
            ]
        )
        messages = [{"role": "system", "content": instruction}, {"role": "user", "content": question}]
        return Request(messages, record=conversation.id)


def turns_to_fill(conversation: Conversation) -> list[int]:
    """Indexes of the assistant messages that call tools without reasoning."""
    return [
        index
        for index, message in enumerate(conversation.messages)
        if message.tool_calls and not (message.reasoning or "").strip()
    ]


def _written(reply: Reply) -> str:
    """The reasoning that was asked for is the teacher's answer, not its own thinking."""
    return reply.content.strip()


def _said_before(conversation: Conversation, index: int) -> str:
    return "\n".join(message.text for message in conversation.messages[:index])


def _transcript(messages: list[Message]) -> str:
    return "\n".join(encode_text(_shown(message)) for message in messages)


def _shown(message: Message) -> dict[str, Any]:
    record = message.to_record()
    return {name: record[name] for name in ("role", "content", "tool_calls") if record.get(name)}
