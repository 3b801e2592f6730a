"""Levels of difficulty, the prompt that they are a label of, and labels that records bring along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError, UsageError

DEFAULT_LEVELS = ("easy", "medium", "hard")
DIFFICULTY = "difficulty"
CONFIDENCE, VOTES, AGREEMENT = "difficulty_confidence", "difficulty_votes", "difficulty_agreement"


def parse_levels(text: str) -> tuple[str, ...]:
    """Levels from a list with commas, easiest first. Raises UsageError unless there are two different ones or more."""
    levels = tuple(level.strip() for level in text.split(","))
    if len(levels) < 2 or len(set(levels)) < len(levels) or not all(levels):
        raise UsageError(f"`levels` {text}: not two or more different names", "easiest first, as in easy,medium,hard")
    return levels


def prompt_text(conversation: Conversation) -> str:
    """What the user says before the assistant first speaks. Raises RecordError where that is nothing."""
    spoken = []
    for message in conversation.messages:
        if message.role == "assistant":
            break
        if message.role == "user":
            spoken.append(message.text)
    text = "\n\n".join(spoken)
    if not text.strip():
        raise RecordError("no_prompt", "no text of a user before the first assistant message")
    return text


@dataclass(frozen=True)
class LabelColumn:
    """Labels under the key `name` of a record: one level, or a list of votes."""

    name: str
    levels: tuple[str, ...]

    def votes(self, conversation: Conversation) -> list[str]:
        """The labels, none where the record has none. Raises RecordError for a level that there is not."""
        given = conversation.difficulty if self.name == DIFFICULTY else conversation.extra.get(self.name)
        votes = [str(vote) for vote in (given if isinstance(given, list) else [given]) if vote is not None]
        unknown = next((vote for vote in votes if vote not in self.levels), None)
        if unknown is not None:
            raise RecordError(
                "unknown_level",
                f"{self.name} is {unknown!r:.60}, not one of {', '.join(self.levels)}",
                "name the levels with `levels`, easiest first",
            )
        return votes


def settle(votes: Sequence[str], levels: Sequence[str]) -> str:
    """The median of the votes, the easier of two.

    >>> settle(["hard", "easy", "hard"], DEFAULT_LEVELS), settle(["easy", "hard"], DEFAULT_LEVELS)
    ('hard', 'easy')
    """
    ordered = sorted(votes, key=levels.index)
    return ordered[(len(ordered) - 1) // 2]


def label(conversation: Conversation, votes: Sequence[str], levels: Sequence[str]) -> None:
    """Write what the votes come to on the record, and, where there are several, the votes and their agreement."""
    conversation.difficulty = settle(votes, levels)
    marks: dict[str, Any] = {}
    if len(votes) > 1:
        marks = {VOTES: list(votes), AGREEMENT: round(votes.count(conversation.difficulty) / len(votes), 4)}
    for key in (VOTES, AGREEMENT, CONFIDENCE):
        conversation.extra.pop(key, None)
    conversation.extra.update(marks)
