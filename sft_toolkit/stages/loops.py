"""Loops on records: what `language`, `mask` and `distill` note of text that repeats itself, and reject."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sft_toolkit.choices import Policy
from sft_toolkit.conversation import Conversation, Message
from sft_toolkit.labelers.repetition import find_loop
from sft_toolkit.stage import Outcome

LOOP = "loop"
REPETITIVE = "repetitive"
NOTE: Final = "note"
REJECT: Final = "reject"
_SHOWN_CHARACTERS = 120


def note_loops(conversation: Conversation, outcome: Outcome) -> None:
    """Give every assistant message the key `loop`: its longest loop, None where there is none."""
    for message in conversation.messages:
        if message.role == "assistant":
            message.extra[LOOP] = loop_record(message)
            outcome.note("loops", message.extra[LOOP] is not None)


def reject_loops(
    conversations: Iterator[Conversation], outcome: Outcome, policy: Policy | None
) -> Iterator[Conversation]:
    """Under the policy `reject`, reject the conversations with a loop that was noted; else let all pass."""
    for conversation in conversations:
        looping = next((message for message in conversation.messages if message.extra.get(LOOP)), None)
        if policy == REJECT and looping is not None:
            outcome.drop(conversation, REPETITIVE, loop_sentence(looping), partner=())
        else:
            yield conversation


def loop_record(message: Message) -> dict[str, Any] | None:
    """The longer of the loops of a message's reasoning and of its content, None where it has none.

    `start` and `end` count characters, `period` words, `share` is the part of the text that repeats. They speak of the
    reasoning, unless `field` names the content.
    """
    found: list[dict[str, Any]] = []
    for field, text in (("reasoning", message.reasoning or ""), ("content", message.text)):
        loop = find_loop(text)
        if loop is not None:
            record: dict[str, Any] = {
                "start": loop.start,
                "end": loop.end,
                "period": loop.period,
                "repeats": loop.repeats,
                "share": loop.share,
            }
            found.append(record if field == "reasoning" else {**record, "field": field})
    return max(found, key=lambda loop: loop["end"] - loop["start"], default=None)


def loop_sentence(message: Message) -> str:
    """The sentence for a person on a message whose `loop` was noted."""
    loop = message.extra[LOOP]
    text = message.text if "field" in loop else message.reasoning or ""
    shown = " ".join(text[loop["start"] : loop["end"]].split())[:_SHOWN_CHARACTERS]
    return f"a period of {loop['period']} words repeats {loop['repeats']} times: {shown}"
