"""The text of a conversation and what the model produces in it: all of rendering that needs no tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from sft_toolkit.chat.control_text import ALIASES, ControlText
from sft_toolkit.chat.effort_sentences import EffortSentences
from sft_toolkit.chat.loss_stretches import untrained_ranges
from sft_toolkit.chat.messages import prepare, prepare_tools
from sft_toolkit.chat.probes import CallShape, Probes
from sft_toolkit.chat.rendered import Range
from sft_toolkit.chat.span_trace import Traced
from sft_toolkit.chat.template import ChatTemplate, Messages, Tools, tojson
from sft_toolkit.chat.tools_text import tools_in_system
from sft_toolkit.chat.turns import Turn, TurnRules, common_length
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError

_SYSTEM = ("system", "developer")
_OTHER_WORD = "\U0010fff9"


class Given(NamedTuple):
    """What a template is rendered with."""

    messages: Messages
    tools: Tools
    variables: Mapping[str, Any]
    before: Messages


@dataclass(slots=True)
class Draft:
    """A rendered conversation that is not tokenised yet, or what is wrong with it."""

    conversation: Conversation
    text: str = ""
    turns: list[Turn] = field(default_factory=list)
    inert: list[Range] = field(default_factory=list)
    untrained: list[Range] = field(default_factory=list)
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

    def __init__(
        self,
        template: ChatTemplate,
        control_text: ControlText,
        probes: Probes,
        rules: TurnRules,
        tools_in_system: bool = False,
        effort_sentences: EffortSentences | None = None,
    ) -> None:
        """`tools_in_system`: declared tools that the template leaves out are written into the system prompt; of
        `effort_sentences`, that of the record's effort always is.
        """
        self._template = template
        self._control_text = control_text
        self._probes = probes
        self._rules = rules
        self._tools_in_system = tools_in_system
        self._effort_sentences = effort_sentences or EffortSentences()

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
        before = self._tools_prompt(messages, tools, notes)
        before = self._effort_prompt(conversation.effort, before, messages, notes)
        traced = self._template.trace(messages, tools, variables, before=before)
        inert = self._control_text.inert_ranges(
            [*before, *messages], tools, partial(self._template.render, variables=variables), traced.text
        )
        notes["tools_not_rendered"] += self._leaves_out_tools(conversation, traced.text)
        self._require_calls(conversation)
        self._require_roles(conversation)
        self._require_results_apart(conversation)
        _require_text(traced, conversation)
        foreign = self._foreign(conversation, traced, Given(messages, tools, variables, before))
        turns = [
            self._rules.turn(traced, traced.of(index), conversation.messages, foreign.get(index, 0))
            for index, message in enumerate(conversation.messages)
            if message.role == "assistant"
        ]
        for turn in turns:
            _require_names(traced.text[turn.begin : turn.end], turn.message, conversation)
        untrained = untrained_ranges(
            conversation.messages,
            messages,
            lambda marked: self._template.render([*before, *marked], tools, variables),
            traced.text,
        )
        return Draft(conversation, traced.text, turns, inert, untrained, notes)

    def _tools_prompt(self, messages: Messages, tools: Tools, notes: Counter[str]) -> Messages:
        """Write tools that the template leaves out into the system prompt of `messages`, or give one to go before."""
        if not (tools and self._tools_in_system) or self._probes.writes_tools:
            return []
        notes["tools_in_system"] += 1
        before = tools_in_system(messages, tools, self._probes.dialect.parts)
        self._require_system(before, "the tools")
        return before

    def _effort_prompt(self, effort: str | None, before: Messages, messages: Messages, notes: Counter[str]) -> Messages:
        """Write the sentence of the record's effort, as `_tools_prompt` does the tools."""
        notes["effort_sentences"] += effort in self._effort_sentences.sentences
        before = self._effort_sentences.in_prompt(effort, before, messages, self._probes.dialect.parts)
        self._require_system(before, "the effort's sentence")
        return before

    def _require_system(self, before: Messages, what: str) -> None:
        if before and not self._probes.writes_role("system", 0):
            detail = f"the chat template writes no system prompt that could hold {what}"
            raise RecordError("role_not_rendered", detail, "choose another template")

    def _leaves_out_tools(self, conversation: Conversation, text: str) -> bool:
        """Whether a declared tool is not in the text: never written by this template, or not in this conversation."""
        if not conversation.tools:
            return False
        written = self._probes.writes_tools or self._tools_in_system
        return not written or any(
            name and not any(spelling in text for spelling in _spellings(name))
            for name in map(_tool_name, conversation.tools)
        )

    def _foreign(self, conversation: Conversation, traced: Traced, given: Given) -> dict[int, int]:
        """Of an answer that opens the conversation, by index: characters of its stretch that belong to no message.

        What stands before its words is found by a second rendering with other words in their place.
        """
        first = next((index for index, message in enumerate(conversation.messages) if message.role not in _SYSTEM), 0)
        if conversation.messages[first].role != "assistant":
            return {}
        stretch = traced.of(first)
        said = traced.text[stretch.begin : stretch.end]
        messages = [*given.messages]
        messages[first] = _in_other_words(messages[first])
        other = self._template.trace(messages, given.tools, given.variables, before=given.before)
        place = other.of(first)
        beginning = said[: common_length(said, other.text[place.begin : place.end])]
        foreign, added = self._rules.foreign(beginning)
        message = conversation.messages[first]
        instructed = [earlier.text.strip() for earlier in conversation.messages[:first]]
        only_calls = message.tool_calls and not (message.text or message.reasoning)
        if (added.strip() and not only_calls) or any(text and text in added for text in instructed):
            detail = f"the chat template writes other text into message {first}, which opens the conversation"
            raise RecordError("message_not_traced", detail)
        return {first: foreign}

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


def _in_other_words(message: dict[str, Any]) -> dict[str, Any]:
    """The same message with an unlikely word in place of its reasoning, its content and the names of its calls."""
    calls = message.get("tool_calls") or []
    changed: dict[str, Any] = dict.fromkeys((key for key in ("reasoning", *ALIASES) if message.get(key)), _OTHER_WORD)
    if message["content"] or not calls:
        parts = isinstance(message["content"], list)
        changed["content"] = [{"type": "text", "text": _OTHER_WORD}] if parts else _OTHER_WORD
    if calls:
        changed["tool_calls"] = [{**call, "function": {**call["function"], "name": _OTHER_WORD}} for call in calls]
    return {**message, **changed}


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
        if sum(map(said.count, _spellings(name))) < calls:
            raise _calls_not_rendered(index)


def _spellings(name: str) -> set[str]:
    """The ways in which a template may write a name."""
    return {name, tojson(name)[1:-1], tojson(name, ensure_ascii=True)[1:-1]}


def _tool_name(tool: dict[str, Any]) -> str | None:
    name = tool.get("function", tool).get("name")
    return name if isinstance(name, str) else None


def _calls_not_rendered(index: int) -> RecordError:
    return RecordError("tool_calls_not_rendered", f"the chat template does not write the tool calls of message {index}")


def _role_not_rendered(index: int, role: str) -> RecordError:
    return RecordError("role_not_rendered", f"the chat template leaves out message {index} ({role})")
