"""How a template begins and ends what an assistant says: found by comparing renderings."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sft_toolkit.chat.probe_words import ANSWER, ARGUMENT, THOUGHT, TOOLS, Probing, assistant, probe, result, user
from sft_toolkit.chat.turns import TurnRules, common_beginning, common_length
from sft_toolkit.conversation import Conversation, Message
from sft_toolkit.errors import RecordError

Variables = dict[str, Any]

_THINKING_OFF: tuple[Variables, ...] = ({"enable_thinking": False}, {"thinking": False}, {"effort": "none"})
_THINKING_ON: tuple[Variables, ...] = (
    {},
    {"enable_thinking": True},
    {"thinking": True},
    *({"effort": effort} for effort in ("low", "medium", "high")),
)


def find_rules(probing: Probing, control: re.Pattern[str], train_empty_think: bool) -> TurnRules:
    """With `train_empty_think`, an empty thinking block counts as the model's own.

    `control` matches the control tokens of the tokenizer that goes with the template.
    """
    search = _Search(probing, control)
    # Some templates end the last answer and earlier ones differently (gpt-oss: <|return|>, and <|end|> in history).
    # The model must learn to produce the former; the latter, where history shows it instead, is not trained.
    stops = search.stops()
    history = search.last_control(search.history, 1)
    return TurnRules(
        # Longest first: of headers that begin alike (with and without an empty thinking block) the longer must win.
        headers=_longest_first(search.headers(train_empty_think)),
        beginnings=_longest_first(set(search.beginnings())),
        stops=tuple(sorted(stops)),
        history_stops=tuple(sorted(history - stops)) if stops else (),
        trailing="" if stops else search.trailing(),
        control=control,
    )


def _longest_first(texts: set[str]) -> tuple[str, ...]:
    return tuple(sorted(texts, key=lambda text: (-len(text), text)))


def generation_blocks_agree(probing: Probing, rules: TurnRules) -> bool | None:
    """Whether `{% generation %}` marks what our rules find, ignoring white space; None where a template has none.

    Asked of two exchanges, or of one where the template refuses two.
    """
    for exchanges in (2, 1):
        conversation = probe(*[user(), assistant()] * exchanges)
        try:
            traced = probing.trace(conversation)
            turns = [
                rules.turn(traced, traced.of(2 * number + 1), conversation.messages) for number in range(exchanges)
            ]
        except RecordError:
            continue
        if not traced.generated:
            return None
        ours = [traced.text[begin:end].strip() for turn in turns for begin, end in turn.pieces]
        return ours == [traced.text[begin:end].strip() for begin, end in traced.generated]
    return None


@dataclass(frozen=True, slots=True)
class _Search:
    probing: Probing
    control: re.Pattern[str]

    @property
    def history(self) -> Conversation:
        """Its first answer lies before the last question."""
        return probe(user(), assistant(), user(), assistant("done"))

    def stops(self) -> set[str]:
        """Control tokens that end the last answer, or the last call where answers have such a token."""
        answers = (probe(user(), assistant()), probe(user(), assistant(ANSWER, THOUGHT)))
        found = {stop for conversation in answers for stop in self.last_control(conversation, 1)}
        # A call may end in a token of its own (Gemma: <|tool_response>). Where answers end in none, a call's last token
        # is call syntax, such as a closing tag, and no stop; nor is one that also stands between two calls of a turn.
        if found:
            one, two = (probe(user(), assistant(None, calls=calls), tools=TOOLS) for calls in (1, 2))
            between = self._said(two, 1).rpartition(f"{ARGUMENT}1")[0]
            found |= {stop for stop in self.last_control(one, 1) if stop not in between}
        return found

    def last_control(self, conversation: Conversation, message: int) -> set[str]:
        """The control token that ends a message, ignoring white space; no token that the message itself holds."""
        said = self._said(conversation, message).rstrip()
        # Only what follows the last word that the message itself holds can be its end: a template may write control
        # tokens before it as well.
        words = [said.rfind(word) + len(word) for word in (ANSWER, ARGUMENT) if word in said]
        if not words:
            return set()
        return {match[0] for match in self.control.finditer(said, max(words)) if match.end() == len(said)}

    def trailing(self) -> str:
        """White space after an earlier answer."""
        said = self._said(self.history, 1)
        return said[len(said.rstrip()) :]

    def headers(self, train_empty_think: bool) -> set[str]:
        """Beginnings of answers that a generation prompt gives.

        A prompt that lets the model think gives as much of an answer as they share; one with an empty thinking block
        gives it wholly or not at all.
        """
        beginnings = set(self.beginnings())
        given = {
            common_beginning(prompt, beginning, self.control)
            for prompt in self._prompts(_THINKING_ON)
            for beginning in beginnings
        }
        if not train_empty_think:
            prompts = set(self._prompts(_THINKING_OFF))
            given |= {prompt for prompt in prompts for beginning in beginnings if beginning.startswith(prompt)}
        return given - {""}

    def _prompts(self, settings: tuple[Variables, ...]) -> Iterator[str]:
        """What a generation prompt adds, with and without what any ending of the text adds (Phi-3: EOS)."""
        contexts = (
            [user()],
            [Message("system", "s"), user()],
            [user(), assistant(), user()],
            [user(), assistant(None, calls=1), result(0)],
            [user(), assistant()],
        )
        for messages, tools, variables in itertools.product(contexts, ([], TOOLS), settings):
            try:
                asked = self.probing.trace(probe(*messages, tools=tools), generation_prompt=True, **variables)
                plain = self.probing.trace(probe(*messages, tools=tools), **variables)
            except RecordError:
                continue
            # Text without the prompt may end in something that the prompt replaces (Phi-3 writes EOS at the very end).
            # So there are two readings: what differs, and all that follows the last message; headers() keeps what is
            # the beginning of a real answer.
            differs = common_length(asked.text, plain.text)
            ends = [stretch.end for stretches in asked.stretches for stretch in stretches]
            yield asked.text[differs:]
            yield asked.text[min(differs, max(ends, default=differs)) :]

    def beginnings(self) -> Iterator[str]:
        """What the template writes before an answer, whatever the answer: at the end, in history, after a tool."""
        places: tuple[tuple[list[Message], list[Message]], ...] = (
            ([user()], []),
            ([user()], [user(), assistant()]),
            ([user(), assistant(None, calls=1), result(0)], []),
        )
        for (before, after), reasoned in itertools.product(places, (False, True)):
            # Two answers that differ in their first letter: what their renderings share is written for any answer.
            first, second = (
                self._said(
                    probe(*before, assistant(word, word if reasoned else None), *after, tools=TOOLS), len(before)
                )
                for word in ("A", "B")
            )
            yield first[: common_length(first, second)]

    def _said(self, conversation: Conversation, message: int) -> str:
        """Nothing, where the template refuses the conversation."""
        try:
            return self.probing.said(conversation, message)
        except RecordError:
            return ""
