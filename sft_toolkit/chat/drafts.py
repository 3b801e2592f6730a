"""The text of a conversation and what the model produces in it: all of rendering that needs no tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sft_toolkit.chat.control_text import ControlText
from sft_toolkit.chat.messages import prepare, prepare_tools
from sft_toolkit.chat.probes import CallShape, Probes
from sft_toolkit.chat.rendered import Range
from sft_toolkit.chat.span_trace import Traced
from sft_toolkit.chat.template import ChatTemplate, tojson
from sft_toolkit.chat.turns import Turn, TurnRules
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError


@dataclass(slots=True)
class Draft:
    """A rendered conversation that is not tokenised yet, or what is wrong with it."""

    conversation: Conversation
    text: str = ""
    turns: list[Turn] = field(default_factory=list)
    inert: list[Range] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    error: RecordError | None = None

    def writes_reasoning(self, turn: Turn) -> bool | None:
        """Whether the reasoning of a turn is in its text; None where it has none."""
        message = self.conversation.messages[turn.message]
        reasoning = (message.reasoning or "").strip()
        if not reasoning:
            return None
        return self.text.count(reasoning, turn.begin, turn.end) > message.text.count(reasoning)


class Drafter:
    """Renders with one template; its control tokens, probes and rules belong to that template."""

    def __init__(self, template: ChatTemplate, control_text: ControlText, probes: Probes, rules: TurnRules) -> None:
        self._template = template
        self._control_text = control_text
        self._probes = probes
        self._rules = rules

    def draft(self, conversation: Conversation, own_variables: Mapping[str, Any]) -> Draft:
        """The text with its turns, or the RecordError that says why there is none."""
        try:
            return self._rendered(conversation, own_variables)
        except RecordError as error:
            return Draft(conversation, error=error)
        except RecursionError:
            detail = "tools, or what a message holds besides its text, nest too deeply"
            return Draft(conversation, error=RecordError("nested_too_deeply", detail))

    def _rendered(self, conversation: Conversation, own_variables: Mapping[str, Any]) -> Draft:
        notes: Counter[str] = Counter()
        messages = prepare(conversation, self._probes.dialect, notes)
        tools = prepare_tools(conversation)
        effort = {} if conversation.effort is None else {"effort": conversation.effort}
        variables = {**own_variables, **effort}
        traced = self._template.trace(messages, tools, variables)
        inert = self._control_text.inert_ranges(
            messages, tools, partial(self._template.render, variables=variables), traced.text
        )
        self._require_calls(conversation)
        self._require_roles(conversation)
        self._require_results_apart(conversation)
        _require_text(traced, conversation)
        turns = [
            self._rules.turn(traced, traced.of(index), conversation.messages)
            for index, message in enumerate(conversation.messages)
            if message.role == "assistant"
        ]
        for turn in turns:
            _require_names(traced.text[turn.begin : turn.end], turn.message, conversation)
        return Draft(conversation, traced.text, turns, inert, notes)

    def _require_calls(self, conversation: Conversation) -> None:
        final = len(conversation.messages) - 1
        for index, message in enumerate(conversation.messages):
            if message.tool_calls:
                shape = CallShape(
                    min(len(message.tool_calls), 2), bool(message.text), bool(message.reasoning), index == final
                )
                if not self._probes.writes_call(shape):
                    raise _calls_not_rendered(index)

    def _require_results_apart(self, conversation: Conversation) -> None:
        answered = any(message.role == "tool" for message in conversation.messages)
        if answered and self._probes.mixes_results:
            raise RecordError(
                "message_not_traced", "the chat template writes tool results into the turn that called, not apart"
            )

    def _require_roles(self, conversation: Conversation) -> None:
        for index, message in enumerate(conversation.messages):
            role = message.role
            if role == "developer" and self._probes.dialect.developer_as_system:
                role = "system"
            if role != "assistant" and message.text and not self._probes.writes_role(role, min(index, 1)):
                raise _role_not_rendered(index, role)


def _require_text(traced: Traced, conversation: Conversation) -> None:
    """Questions and tool results for which nothing was written must stand elsewhere in the text: merged, or as JSON."""
    written = traced.written
    for index, message in enumerate(conversation.messages):
        if message.role in ("user", "tool") and index not in written:
            text = message.text.strip()
            if text not in traced.text and tojson(text)[1:-1] not in traced.text:
                raise _role_not_rendered(index, message.role)


def _require_names(said: str, index: int, conversation: Conversation) -> None:
    """A turn holds the name of the tool once for each call of it."""
    for name, calls in Counter(call.name for call in conversation.messages[index].tool_calls).items():
        spellings = {name, tojson(name)[1:-1], tojson(name, ensure_ascii=True)[1:-1]}
        if sum(map(said.count, spellings)) < calls:
            raise _calls_not_rendered(index)


def _calls_not_rendered(index: int) -> RecordError:
    return RecordError("tool_calls_not_rendered", f"the chat template does not write the tool calls of message {index}")


def _role_not_rendered(index: int, role: str) -> RecordError:
    return RecordError("role_not_rendered", f"the chat template leaves out message {index} ({role})")
