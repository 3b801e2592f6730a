"""How many trained tokens of reasoning stand under the sentence of another effort, counted from packed shards.

It reads the shards with pyarrow, the ids with tokenizers and the records as plain JSON, and shares no code with the
product: a document's id leads to its record, its text to the effort that it states, its trained stretches to the
answers that hold their reasoning, and those to the label of their exchange.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from tokenizers import Tokenizer

Record = dict[str, Any]
GREETING = "any"


def count(
    packed: Path, records: list[Record], tokenizer: Tokenizer, stated: Callable[[str], str | None]
) -> Counter[str]:
    """Tokens of reasoning `own` (the document states the label of their exchange) and `other`; `answers`: how many
    stretches of loss hold no reasoning, by the same two names; `unknown`: stretches of which no answer is found."""
    by_id = {record["id"]: record for record in records}
    found: Counter[str] = Counter()
    for name, ids, mask in documents(packed):
        text = tokenizer.decode(ids, skip_special_tokens=False)
        record = by_id.get(name) or by_id[name.rpartition("#")[0]]
        for trained, run in groupby(zip(mask, ids, strict=True), key=lambda pair: pair[0]):
            if trained:
                said = tokenizer.decode([token for _, token in run], skip_special_tokens=False)
                found.update(_weighed(said, record, stated(text), tokenizer))
    return found


def documents(packed: Path) -> Iterator[tuple[str, list[int], list[bool]]]:
    """Id, tokens and mask of each document of each sequence."""
    for path in sorted(packed.glob("*.arrow")):
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
        for row in table.to_pylist():
            for name, (begin, end) in zip(row["ids"], pairwise(row["cu_seqlens"]), strict=True):
                yield name, row["input_ids"][begin:end], row["loss_mask"][begin:end]


def _weighed(said: str, record: Record, stated: str | None, tokenizer: Tokenizer) -> Counter[str]:
    """Of the answers that this stretch may be, the one with the longest reasoning in it; one that agrees goes first."""
    candidates = []
    for label, message in _answers(record):
        if _content(message) in said and _calls(message, said):
            reasoning = (message.get("reasoning") or "").strip()
            reasoning = reasoning if reasoning in said else ""
            candidates.append((len(reasoning), label in (stated, GREETING), reasoning))
    if not candidates:
        return Counter(unknown=1)
    _, agrees, reasoning = max(candidates)
    which = "own" if agrees else "other"
    if not reasoning:
        return Counter({f"{which}_answers": 1})
    return Counter({which: len(tokenizer.encode(reasoning, add_special_tokens=False).ids)})


def _content(message: Record) -> str:
    content = message.get("content") or ""
    return (content if isinstance(content, str) else "".join(part.get("text", "") for part in content)).strip()


def _calls(message: Record, said: str) -> bool:
    return all(call["function"]["name"] in said for call in message.get("tool_calls") or [])


def _answers(record: Record) -> Iterator[tuple[str | None, Record]]:
    """Assistant messages, each with the label of its exchange: the one on the user message that opens it.

    What precedes the first question belongs to none, and agrees with any.
    """
    label, before = GREETING, ""
    for message in record["messages"]:
        if message["role"] == "user" and before != "user":
            label = message.get("effort")
        elif message["role"] == "assistant":
            yield label, message
        before = message["role"]


def read_records(*paths: Path) -> list[Record]:
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]
