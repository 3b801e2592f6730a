"""Records that occur again, found in a pass before the run that drops or numbers them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import xxhash

from sft_toolkit.conversation import Conversation
from sft_toolkit.formats.plain import content_hash
from sft_toolkit.running.options import RunOptions
from sft_toolkit.running.passes import Batches, measure_blocks, readable_twice
from sft_toolkit.shards.ids import IdLedger
from sft_toolkit.stage import Outcome


@dataclass(frozen=True, slots=True)
class _Seen:
    """hashes: uint64[records], of what makes records equal; places: where each stands."""

    hashes: npt.NDArray[np.uint64]
    places: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class _Look:
    """Looks at the records of a block. Where they are to be dropped, equal are those of equal content and id."""

    with_content: bool

    def __call__(self, batches: Batches, outcome: Outcome) -> _Seen:
        hashes, places = [], []
        for batch in batches:
            numbers: Counter[str] = Counter()
            for conversation in batch:
                hashes.append(xxhash.xxh3_64_intdigest(self._identity(conversation)))
                places.append((conversation.origin, numbers[conversation.origin]))
                numbers[conversation.origin] += 1
        return _Seen(np.array(hashes, np.uint64), places)

    def _identity(self, conversation: Conversation) -> bytes:
        content = content_hash(conversation.messages, conversation.tools) if self.with_content else ""
        return f"{content} {conversation.id}".encode()


@contextmanager
def repeats_handled(run: RunOptions) -> Iterator[RunOptions]:
    """The run with what it needs to drop or number the records that occur again, which costs a pass over the inputs.

    Where it is to do neither, the run as it is.
    """
    if run.reader.duplicates == "error":
        yield run
        return
    with readable_twice(run) as kept:
        yield replace(kept, reader=replace(kept.reader, repeats=_find(kept)))


def _find(run: RunOptions) -> dict[tuple[str, int], int]:
    ledger, before, found = IdLedger(), Counter[int](), {}
    for seen, _ in measure_blocks(_Look(run.reader.duplicates == "drop"), run):
        for place in np.flatnonzero(ledger.seen(seen.hashes)).tolist():
            hashed = int(seen.hashes[place])
            before[hashed] += 1
            found[seen.places[place]] = before[hashed]
    return found
