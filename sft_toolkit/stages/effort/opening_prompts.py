"""Opening prompts with several lengths of reasoning: the contrast that teaches a model what the label means.

Where every prompt has one length, the length follows from the prompt, and a model may learn to leave the label unread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from sft_toolkit.conversation import Conversation


class OpeningPrompts(NamedTuple):
    """`distinct` opening prompts, of which `repeated` open two or more records, `contrasted` with different lengths."""

    distinct: int
    repeated: int
    contrasted: int


class OpeningLengths:
    """Collects what opens each record, as a hash, and the length of the reasoning that follows: 12 bytes a record."""

    def __init__(self) -> None:
        self._prompts = [np.empty(0, np.uint64)]
        self._lengths = [np.empty(0, np.int32)]

    def add(self, prompts: Sequence[int], lengths: Sequence[int]) -> None:
        """`prompts`: `opening_hash` of each record of a block; `lengths`: tokens, of its first exchange."""
        self._prompts.append(np.array(prompts, np.uint64))
        self._lengths.append(np.array(lengths, np.int32))

    def summed(self) -> OpeningPrompts:
        prompts, lengths = np.concatenate(self._prompts), np.concatenate(self._lengths)
        order = np.lexsort((lengths, prompts))
        prompts, lengths = prompts[order], lengths[order]
        same = prompts[1:] == prompts[:-1]
        distinct = len(prompts) - int(same.sum())
        return OpeningPrompts(
            distinct, _prompts_of(prompts, same), _prompts_of(prompts, same & (lengths[1:] != lengths[:-1]))
        )


def _prompts_of(prompts: npt.NDArray[np.uint64], where: npt.NDArray[np.bool_]) -> int:
    """How many prompts stand at the places: bool[n - 1], between each record and the next."""
    return len(np.unique(prompts[1:][where]))


def opening_hash(conversation: Conversation) -> int | None:
    """Hash of the record's first question, white space at its ends aside; None where it has none."""
    exchanges = conversation.exchanges()
    if not exchanges:
        return None
    asked = []
    for message in conversation.messages[exchanges[0].start :]:
        if message.role != "user":
            break
        asked.append(message.text.strip())
    return xxhash.xxh3_64_intdigest("\n".join(asked).encode())
