"""Small conversations of words that occur nowhere else, and how a template writes them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sft_toolkit.chat.messages import Dialect, prepare, prepare_tools
from sft_toolkit.chat.span_trace import Traced
from sft_toolkit.chat.template import ChatTemplate
from sft_toolkit.conversation import Conversation, Message, ToolCall
from sft_toolkit.errors import RecordError

QUESTION, ANSWER, THOUGHT, TOOL, ARGUMENT = (
    f"kolibri{word}" for word in ("question", "answer", "thought", "tool", "argument")
)
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": TOOL,
            "description": "A tool.",
            "parameters": {
                "type": "object",
                "properties": {"word": {"type": "string", "description": "A word."}},
                "required": ["word"],
            },
        },
    }
]
DOCUMENTS = [{"title": "A title", "text": "A text."}]


@dataclass(frozen=True, slots=True)
class Probing:
    """A template with the forms in which it is given its messages.

    `always_tools`: it only ever renders records that declare tools, and so is asked with tools throughout.
    """

    template: ChatTemplate
    dialect: Dialect
    always_tools: bool = False

    def trace(self, conversation: Conversation, generation_prompt: bool = False, **variables: Any) -> Traced:
        messages = prepare(conversation, self.dialect, Counter())
        tools = prepare_tools(conversation) or (TOOLS if self.always_tools else None)
        return self.template.trace(messages, tools, variables, generation_prompt)

    def said(self, conversation: Conversation, message: int) -> str:
        """All that the template writes for one message."""
        traced = self.trace(conversation)
        stretch = traced.of(message)
        return traced.text[stretch.begin : stretch.end]

    def mixes(self, conversation: Conversation, message: int, word: str) -> bool:
        """Whether a word of another message comes out in the stretch of this one, and not in one of its own."""
        try:
            traced = self.trace(conversation)
            stretch = traced.of(message)
        except RecordError:
            return False
        bounds = [stretch.begin, *(edge for inner in stretch.inner for edge in (inner.begin, inner.end)), stretch.end]
        return any(word in traced.text[begin:end] for begin, end in zip(bounds[::2], bounds[1::2], strict=True))


def probe(*messages: Message, tools: list[dict[str, Any]] | None = None) -> Conversation:
    return Conversation("probe", list(messages), tools or [])


def user() -> Message:
    return Message("user", QUESTION)


def assistant(content: str | None = ANSWER, reasoning: str | None = None, calls: int = 0) -> Message:
    """An answer; call number i is of tool TOOLi with argument ARGUMENTi."""
    made = [ToolCall(f"{TOOL}{number}", {"word": f"{ARGUMENT}{number}"}, _identity(number)) for number in range(calls)]
    return Message("assistant", content, reasoning, made)


def result(number: int, content: str = "result") -> Message:
    """The result of call number `number`."""
    return Message("tool", content, tool_call_id=_identity(number))


def _identity(number: int) -> str:
    """An id of the usual form, which templates that want nine letters and digits refuse."""
    return f"call_kolibri_{number}"
