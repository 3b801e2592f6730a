"""How a chat template opens thinking, read off what it renders, and whether a prompt ends inside open thinking.

A template's own tag is found by rendering a message with reasoning: what stands before the reasoning is what a prompt
must end with for the model to be inside its thinking.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

Messages = list[dict[str, Any]]
Rendering = Callable[[Messages, bool], str | None]
"""Messages as a chat template renders them, with the generation prompt or without; None where it refuses them."""


class Mark(NamedTuple):
    """The tags of a family of templates; `before_answer` and `after_answer` are what wraps the answer.

    Where a prompt holds `header`, the assistant's in that family, no tags but these open its thinking.
    """

    opening: str
    closing: str
    header: str = ""
    before_answer: str = ""
    after_answer: str = ""


THINK = Mark("<think>", "</think>")
MARKS = (
    THINK,
    Mark("[THINK]", "[/THINK]"),
    Mark("<seed:think>", "</seed:think>"),
    Mark("◁think▷", "◁/think▷"),
    Mark("<|START_THINKING|>", "<|END_THINKING|>", "", "<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    Mark("<|channel>thought", "<channel|>", "<|turn>model"),
    Mark(
        "<|channel|>analysis<|message|>",
        "<|end|>",
        "<|start|>assistant",
        "<|start|>assistant<|channel|>final<|message|>",
        "<|return|>",
    ),
    Mark(" to=self<|message|>", "<|eom|>", "", "<|start|>assistant to=user<|message|>", "<|eot|>"),
)
CANARY_QUESTION = "Continue the list of numbers in your thoughts up to 12, then say done."
CANARY_OPENER = "1, 2, 3, 4, 5, 6, 7, 8,"
CANARY: Messages = [{"role": "user", "content": CANARY_QUESTION}]
_ANSWER = "It is done."
_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
_HEADER = re.compile(r"(?:<\|turn>|<\|start\|>)?(?:assistant|model|chatbot)|\[/INST\]", re.IGNORECASE)


def with_reasoning(message: dict[str, Any]) -> dict[str, Any]:
    """The message with its `reasoning` under every name that chat templates look for it."""
    reasoning = message.get("reasoning")
    return message if reasoning is None else {**message, **dict.fromkeys(_REASONING_FIELDS, reasoning)}


def _probes() -> list[Messages]:
    """Turns that end in an answer after thinking; some templates write the thinking before tool calls alone."""
    turn = with_reasoning({"role": "assistant", "content": _ANSWER, "reasoning": CANARY_OPENER})
    function = {"name": "say", "arguments": {"what": _ANSWER}}
    call = {"id": "call00000", "type": "function", "function": function}
    result = {"role": "tool", "tool_call_id": "call00000", "name": "say", "content": "ok"}
    return [[turn], [{**turn, "content": "", "tool_calls": [call]}, result]]


PROBES: list[Messages] = [[*CANARY, *probe] for probe in _probes()]


@dataclass(frozen=True, slots=True)
class Opening:
    """How a generation prompt becomes one with open thinking: `cut` goes from its end, `add` takes its place.

    `own` is the canary's prompt up to the first word of thinking, as the template writes it. `mark` are the tags, None
    where they are of no family known here, so that replies as text could not be read.
    """

    own: str
    cut: str
    add: str
    mark: Mark | None

    @property
    def tag(self) -> str:
        """What opens thinking, as the template writes it; of a family not known here, what it adds to a prompt."""
        return self.own[self.own.rfind(self.mark.opening) :] if self.mark else self.add

    def opened(self, prompt: str, opener: str) -> str:
        """The generation prompt, thinking opened, `opener` as its first words. Raises ValueError for another prompt."""
        if not prompt.endswith(self.cut):
            raise ValueError(f"the generation prompt ends in {prompt[-40:]!r}, another one in {self.cut!r}")
        return f"{prompt.removesuffix(self.cut)}{self.add}{opener}"


UNKNOWN = Opening("", "", f"{THINK.opening}\n", THINK)
"""For a model whose template writes no reasoning: `<think>`, which it takes as text, unless the prompt opens it."""


def opening_of(render: Rendering) -> Opening | None:
    """`find_opening` of a template that is at hand."""
    prompt = render(CANARY, True)
    return None if prompt is None else find_opening(prompt, (render(probe, False) for probe in PROBES))


def find_opening(prompt: str, probes: Iterable[str | None]) -> Opening | None:
    """How thinking is opened, from the canary's generation prompt and the PROBES as the same template renders them.

    None where the template writes no reasoning, and opens no thinking itself either.

    >>> turn = f"{CANARY_QUESTION} assistant:"
    >>> find_opening(turn, [f"{turn}<think>{CANARY_OPENER}</think>It is done."]).add
    '<think>'
    """
    question_end = prompt.rfind(CANARY_QUESTION) + len(CANARY_QUESTION)
    for text in filter(None, probes):
        own, found, rest = text.partition(CANARY_OPENER)
        closing, answered, _ = rest.partition(_ANSWER)
        shared = _shared_beginning(own, prompt)
        if found and answered and closing.strip() and own.strip() != text.strip() and shared >= question_end:
            mark = next((mark for mark in MARKS if mark.closing in closing), None)
            return Opening(own, prompt[shared:], own[shared:], mark)
    mark = open_mark(prompt)
    return None if mark is None else Opening(prompt, "", "", mark)


def _shared_beginning(one: str, other: str) -> int:
    """How many characters two texts begin with together."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (mine, yours) in pairs if mine != yours), min(len(one), len(other)))


def open_mark(prompt: str) -> Mark | None:
    """The tags of the thinking that the end of `prompt` opens; None where it opens none.

    None also where a thinking block was closed since the assistant's header: such a turn has been marked as one without
    thinking, or has done with it.
    """
    text = prompt.rstrip()
    header = max((match.start() for match in _HEADER.finditer(text)), default=0)
    turn = text[header:]
    family = next((mark for mark in MARKS if mark.header and turn.startswith(mark.header)), None)
    mark = next((mark for mark in (MARKS if family is None else [family]) if turn.endswith(mark.opening)), None)
    return None if mark is None or any(other.closing in turn for other in MARKS) else mark
