"""Which forms a template wants its messages in, and what of them it writes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from sft_toolkit.chat.messages import Dialect
from sft_toolkit.chat.probe_words import (
    ANSWER,
    ARGUMENT,
    QUESTION,
    THOUGHT,
    TOOL,
    TOOLS,
    Probing,
    assistant,
    probe,
    result,
    user,
)
from sft_toolkit.chat.span_trace import Traced
from sft_toolkit.chat.template import ChatTemplate
from sft_toolkit.conversation import Message
from sft_toolkit.errors import RecordError, ToolkitError


@dataclass(frozen=True, slots=True)
class CallShape:
    """What decides whether a template writes a tool call: `calls` is 1, or 2 for several."""

    calls: int
    content: bool = False
    reasoning: bool = False
    last: bool = False


class Probes:
    """Answers about one template; each question is rendered once."""

    def __init__(self, template: ChatTemplate, always_tools: bool = False) -> None:
        """Raises ToolkitError where the template writes no answer, or no answer apart from questions."""
        self.probing = _find_dialect(Probing(template, Dialect(), always_tools))
        _require_answers_apart(self.probing)
        self.writes_call = lru_cache(None)(self._writes_call)
        self.writes_role = lru_cache(None)(self._writes_role)
        self.writes_reasoning = lru_cache(None)(self._writes_reasoning)

    @property
    def dialect(self) -> Dialect:
        return self.probing.dialect

    def needed_variables(self, template: ChatTemplate) -> dict[str, Any]:
        """What `template` cannot do without, and every record must bring: documents."""
        probed = self.probing.template.variables
        return {name: value for name, value in probed.items() if name not in template.variables}

    def _writes_call(self, shape: CallShape) -> bool:
        return _writes_call(self.probing, shape)

    def _writes_role(self, role: str, position: int) -> bool:
        """True where the text of such a message comes out; `position` is 0 for the first message, else 1."""
        return _writes_role(self.probing, role, position)

    def _writes_reasoning(self, last: bool) -> bool:
        """Whether the reasoning of the last answer, or of one before the last question, is written."""
        later = [] if last else [user(), assistant()]
        try:
            return THOUGHT in self.probing.said(probe(user(), assistant(ANSWER, THOUGHT), *later), 1)
        except RecordError:
            return False

    @cached_property
    def writes_tools(self) -> bool:
        """Whether the text holds the tools that a conversation declares."""
        try:
            return TOOL in self.probing.trace(probe(user(), assistant(), tools=TOOLS)).text
        except RecordError:
            return False

    def writes_effort(self) -> bool:
        """Whether the effort of a record changes the text, or a template refuses one that it does not know."""
        conversation = probe(user(), assistant())
        try:
            texts = {self.probing.trace(conversation, effort=effort).text for effort in ("low", "high")}
        except RecordError:
            return True
        return len(texts) > 1

    @cached_property
    def mixes_results(self) -> bool:
        """Whether a turn that calls holds the result of the call, with nothing to tell them apart."""
        word = "kolibriresult"
        called = probe(user(), assistant(None, calls=1), result(0, word), assistant(), tools=TOOLS)
        return self.probing.mixes(called, 1, word)

    def preamble(self) -> str:
        """What the template writes before the first message where no system message is given.

        It may stand in the stretch of the first question; then it is what a second question has not.
        """
        try:
            traced = self.probing.trace(probe(user(), assistant(), user(), assistant()))
            second = _before_question(traced, 2)
        except RecordError:
            traced, second = self.probing.trace(probe(user(), assistant())), ""
        stretches = traced.stretches[0]
        if not stretches:
            return ""
        first = _before_question(traced, 0)
        own = first.removesuffix(second) if first.endswith(second) else ""
        return traced.text[: stretches[0].begin] + own


def _before_question(traced: Traced, message: int) -> str:
    """What stands before the words of a question; nothing where it is not written in one place."""
    try:
        stretch = traced.of(message)
    except RecordError:
        return ""
    before, _, said = traced.text[stretch.begin : stretch.end].partition(QUESTION)
    return before if said or before else ""


def _find_dialect(probing: Probing) -> Probing:
    """The same, in the forms that the template wants."""
    probing = _with(probing, parts=_wants_parts(probing))
    probing = _with_calls(probing)
    return _with(probing, developer_as_system=not _writes_role(probing, "developer", 0))


def _with(probing: Probing, **forms: bool) -> Probing:
    return replace(probing, dialect=replace(probing.dialect, **forms))


def _wants_parts(probing: Probing) -> bool:
    """Raises ToolkitError where the template takes neither text nor parts."""
    faults = []
    for parts in (False, True):
        try:
            if ANSWER in _with(probing, parts=parts).said(probe(user(), assistant()), 1):
                return parts
            faults.append("it leaves the answer out")
        except RecordError as fault:
            faults.append(fault.detail)
    raise ToolkitError(f"the chat template cannot render a question and an answer: {faults[0]}")


def _require_answers_apart(probing: Probing) -> None:
    one = [user(), assistant()]
    for messages in (one, [*one, *one]):
        if probing.mixes(probe(*messages), 1, QUESTION):
            raise ToolkitError(
                "the chat template writes a question where it takes up an answer, with nothing to tell them apart",
                "its loop must take up one message at a time",
            )


def _with_calls(probing: Probing) -> Probing:
    """The first way of giving tool calls that the template writes, else the usual one."""
    for text, null, short in itertools.product((False, True), repeat=3):
        candidate = _with(probing, text_arguments=text, null_content=null, short_ids=short)
        if _writes_call(candidate, CallShape(1)):
            return candidate
    return probing


def _writes_call(probing: Probing, shape: CallShape) -> bool:
    """True where every call of a turn of this shape comes out in that turn, with name and argument."""
    turn = assistant(ANSWER if shape.content else None, THOUGHT if shape.reasoning else None, shape.calls)
    later = [] if shape.last else [*map(result, range(shape.calls)), assistant("done")]
    try:
        said = probing.said(probe(user(), turn, *later, tools=TOOLS), 1)
    except RecordError:
        return False
    return all(f"{word}{number}" in said for word in (TOOL, ARGUMENT) for number in range(shape.calls))


def _writes_role(probing: Probing, role: str, position: int) -> bool:
    word = f"kolibrisaid{role}"
    asked = [] if role == "user" else [user()]
    tools: list[dict[str, Any]] = []
    if role == "tool":
        messages = [user(), assistant(None, calls=1), result(0, word), assistant()]
        tools = TOOLS
    elif position == 0:
        messages = [Message(role, word), *asked, assistant()]
    else:
        messages = [user(), assistant(), Message(role, word), *asked, assistant()]
    try:
        return word in probing.trace(probe(*messages, tools=tools)).text
    except RecordError:
        return False
