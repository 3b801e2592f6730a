"""How well-formed an attempt is: m = m_min + (1 - m_min) * product over signals k of (1 - f_k * ||v_k||_p).

v_k is 1 in each turn that breaks signal k, and ||v||_p = (mean of v^p)^(1/p), so that one bad turn of many counts more
than its share. p = 2 and m_min = f_k = 1/2 are those of the Kolibri report, section 4.1; the formula is put together
from them and from its worked numbers .625, .688, .750 and .95, and the signals are this toolkit's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from sft_toolkit.conversation import Conversation, Message
from sft_toolkit.labelers.repetition import find_loop
from sft_toolkit.tool_calls.judge import Judge

P = 2.0
LOWEST = 0.5
FACTOR = 0.5


def format_multiplier(violations: Mapping[str, Sequence[float]]) -> float:
    """The multiplier, LOWEST to 1. violations: of each signal, how far each turn breaks it, 0 to 1.

    >>> format_multiplier({"calls": [1.0]}), format_multiplier({"calls": [1.0], "finish": [1.0]})
    (0.75, 0.625)
    """
    product = 1.0
    for turns in violations.values():
        norm = (sum(value**P for value in turns) / len(turns)) ** (1 / P) if turns else 0.0
        product *= 1 - FACTOR * norm
    return LOWEST + (1 - LOWEST) * product


def format_score(conversation: Conversation) -> float:
    """The multiplier of a record: calls that its tools admit, no loops, turns that ended, something said in each."""
    turns = [message for message in conversation.messages if message.role == "assistant"]
    bad = {verdict.turn for verdict in _judge().judge(conversation).verdicts}
    places = [index for index, message in enumerate(conversation.messages) if message.role == "assistant"]
    return format_multiplier(
        {
            "calls": [float(place in bad) for place in places],
            "loops": [float(_loops(message)) for message in turns],
            "finish": [float(message.extra.get("finish_reason") in ("length", "content_filter")) for message in turns],
            "said": [float(not message.text.strip() and not message.tool_calls) for message in turns],
        }
    )


@cache
def _judge() -> Judge:
    return Judge()


def _loops(message: Message) -> bool:
    return any(find_loop(text) is not None for text in (message.reasoning or "", message.text))
