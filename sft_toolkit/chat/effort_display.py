"""What a prompt shows of its record's effort, found by rendering one small conversation at each level."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from sft_toolkit.chat.effort_sentences import EffortSentences
from sft_toolkit.chat.messages import prepare
from sft_toolkit.chat.probe_words import TOOLS, Probing, assistant, probe, user
from sft_toolkit.chat.template import with_written_numbers
from sft_toolkit.conversation import EFFORTS
from sft_toolkit.errors import RecordError, UsageError


class EffortDisplay:
    """Of one template, and of the sentences and variables that state what the template has no words for."""

    def __init__(self, probing: Probing, sentences: EffortSentences) -> None:
        self._probing = probing
        self._sentences = sentences
        self.shown = lru_cache(None)(self._shown)

    def require_sentences(self) -> None:
        """Raises UsageError where the template leaves out the sentence of a level."""
        for level, sentence in self._sentences.sentences.items():
            if " ".join(sentence.split()) not in " ".join("".join(self.shown(level)).split()):
                raise UsageError(
                    f"effort sentences: the chat template does not write the sentence of {level}",
                    "does it take a system message?",
                )

    def states(self, level: str) -> bool:
        """Whether a prompt of this level says so. A default of the template's own says nothing."""
        return self._sentences.states(level) or self.shown(level) != self.shown(None)

    @property
    def unstated(self) -> list[str]:
        """The levels of which a prompt says nothing."""
        return [level for level in EFFORTS if not self.states(level)]

    def _shown(self, level: str | None) -> tuple[str, str]:
        """What a prompt of this level looks like, without and with a generation prompt: levels that agree look alike.

        Where the template refuses a level, what it says.
        """
        dialect = self._probing.dialect
        messages = prepare(probe(user(), assistant()), dialect, Counter())
        tools = TOOLS if self._probing.always_tools else None
        before = self._sentences.in_prompt(level, [], messages, dialect.parts)
        given = {**self._sentences.of_level(level), **({} if level is None else {"effort": level})}
        variables = with_written_numbers(given)
        try:
            answered, asked = (
                self._probing.template.render([*before, *shown], tools, variables, generation_prompt)
                for shown, generation_prompt in ((messages, False), (messages[:-1], True))
            )
        except RecordError as error:
            return error.detail, ""
        return answered, asked
