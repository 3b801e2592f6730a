"""`dedup`: one record of each cluster of like ones."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from sft_toolkit.choices import DuplicateField, NumbersRule, require_choices
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.passes import Batches, measure_blocks
from sft_toolkit.shards.ids import IdLedger
from sft_toolkit.stage import Outcome, Stage
from sft_toolkit.stages.choosing.clusters import BandFiles, Clusters, TextFile
from sft_toolkit.stages.choosing.facts import Facts, FactWriter
from sft_toolkit.stages.choosing.likeness import SKETCH, band_rows, bands, likeness
from sft_toolkit.stages.choosing.plain_words import is_number, tokens
from sft_toolkit.stages.choosing.prompts import field_value, last_attempt
from sft_toolkit.stages.choosing.two_passes import look_then_apply

CLUSTER, CLUSTER_SIZE = "cluster", "cluster_size"
EXACT, NEAR = "duplicate_exact", "duplicate_near"
_BEST = "best:"
_LARGE_SHARE, _LARGE_SIZE = 0.05, 20
_TURN, _PART = " ¶ ", "\x1e"


@dataclass(frozen=True)
class DedupOptions:
    """`contrast`: how many times longer the longest reasoning of a prompt must be for both to stay; None: one stays.

    Raises UsageError for a threshold that is no share, and a `keep` that is no rule.
    """

    by: DuplicateField = "prompt"
    threshold: float = 0.8
    keep: str = "first"
    contrast: float | None = None
    numbers: NumbersRule = "keep"
    allow_large: bool = False

    def __post_init__(self) -> None:
        require_choices(self)
        if not 0 < self.threshold <= 1:
            raise UsageError(f"`threshold` {self.threshold}: no share above 0", "0.8 is usual")
        if self.keep not in ("first", "longest") and not (self.keep.startswith(_BEST) and self.keep != _BEST):
            raise UsageError(f"`keep` {self.keep}: unknown", "choose one of first, longest, best:FIELD")
        if self.contrast is not None and self.by != "prompt":
            raise UsageError("`keep_contrast` compares the reasoning of one prompt", "add `by=prompt`")

    def texts(self, conversation: Conversation) -> list[str]:
        """The normalised texts of a record that are compared, each with its like."""
        turns = [message.text for message in conversation.messages if message.role == "user"]
        prompt = _TURN.join(" ".join(self._tokens(turn)) for turn in turns)
        turn = last_attempt(conversation)
        answer = "" if turn is None else " ".join(self._tokens(conversation.messages[turn].text))
        return {"prompt": [prompt], "answer": [answer], "prompt+answer": [prompt, answer]}[self.by]

    def _tokens(self, text: str) -> list[str]:
        found = tokens(text)
        return ["0" if is_number(token) else token for token in found] if self.numbers == "ignore" else found


class _Row(NamedTuple):
    """What is remembered of one record. `rank`: the higher, the rather it is kept; `reasoning`: words."""

    id: str
    text: str
    rank: float
    reasoning: int


class _Looked(NamedTuple):
    rows: list[_Row]
    hashes: npt.NDArray[np.uint64]
    places: npt.NDArray[np.uint64]


@dataclass(frozen=True)
class DedupStage(Stage):
    """Applies the clusters of the first pass: `members` by id."""

    how: DedupOptions
    members: Facts

    name: ClassVar[str] = "dedup"

    @property
    def draws(self) -> bool:
        return True

    def options(self) -> dict[str, Any]:
        return asdict(self.how)

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        for conversation in batch:
            member = self.members.get(conversation.id) or {"cluster": None, "size": 1, "lost": None}
            conversation.extra[CLUSTER] = member["cluster"]
            outcome.note("empty_text", not all(map(str.strip, self.how.texts(conversation))))
            if member["lost"]:
                lost = member["lost"]
                detail = f"{lost['likeness']:.3f} like {lost['to'][0]}"
                outcome.drop(conversation, lost["reason"], detail, partner=tuple(lost["to"]))
                continue
            conversation.extra[CLUSTER_SIZE] = member["size"]
            conversation.provenance.append(self.stamp)
            yield conversation


def run_dedup(how: DedupOptions, run: RunOptions) -> Summary:
    """Keep one record of each cluster.

    Raises ToolkitError that names a cluster of more than a twentieth of the records, unless `allow_large`; else as
    `run_stage` does.
    """
    return look_then_apply(partial(_decide, how), run)


def _decide(how: DedupOptions, run: RunOptions, folder: Path) -> tuple[Stage, dict[str, Any]]:
    corpus = _Corpus(folder, how)
    for looked, counters in measure_blocks(partial(_look, how), run):
        corpus.add(looked)
        run.progress(counters)
    writer = FactWriter(folder, "members")
    clusters = 0
    for group in corpus.clusters():
        corpus.require_small(group)
        clusters += 1
        for identity, member in corpus.members(group):
            writer.add(identity, member)
    return DedupStage(how, writer.save()), {"clusters": clusters}


def _look(how: DedupOptions, batches: Batches, outcome: Outcome) -> _Looked:
    rows: list[_Row] = []
    hashes, places = [], []
    band = band_rows(how.threshold)
    for batch in batches:
        for conversation in batch:
            texts = how.texts(conversation)
            text = _PART.join(texts)
            if all(map(str.strip, texts)):
                places.append(len(rows))
                exact = np.array([xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))], np.uint64)
                hashes.append(np.concatenate([exact, bands(texts, _numbers(text).encode(), band)]))
            rows.append(_Row(conversation.id, text, _rank(conversation, how), _reasoning_words(conversation, how)))
    width = 1 + SKETCH // band
    stacked = np.stack(hashes) if hashes else np.empty((0, width), np.uint64)
    return _Looked(rows, stacked, np.array(places, np.uint64))


def _numbers(text: str) -> str:
    """The numbers of a normalised text in order: texts of different ones are no duplicates."""
    return " ".join(token for token in text.replace(_PART, f" {_PART} ").split(" ") if token and is_number(token))


def _rank(conversation: Conversation, how: DedupOptions) -> float:
    if how.keep == "longest":
        turn = last_attempt(conversation)
        return float(0 if turn is None else len(conversation.messages[turn].text))
    if how.keep.startswith(_BEST):
        value = field_value(conversation, how.keep.removeprefix(_BEST))
        number = float(value) if hasattr(value, "__float__") else math.nan
        return -math.inf if math.isnan(number) else number
    return 0.0


def _reasoning_words(conversation: Conversation, how: DedupOptions) -> int:
    if how.contrast is None:
        return 0
    return sum(len((message.reasoning or "").split()) for message in conversation.messages)


class _Corpus:
    """What the first pass keeps: texts, ids and band hashes in files, a few numbers a record in memory."""

    def __init__(self, folder: Path, how: DedupOptions) -> None:
        self._how = how
        self._ledger = IdLedger()
        self._ids = TextFile(folder / "ids")
        self._texts = TextFile(folder / "texts")
        self._ranks = array("d")
        self._reasoning = array("l")
        self._bands = BandFiles(folder, 1 + SKETCH // band_rows(how.threshold))

    def add(self, looked: _Looked) -> None:
        first = len(self._ids)
        self._ledger.add([row.id for row in looked.rows])
        for row in looked.rows:
            self._ids.add(row.id)
            self._texts.add(row.text)
            self._ranks.append(row.rank)
            self._reasoning.append(row.reasoning)
        self._bands.add(looked.places + np.uint64(first), looked.hashes)

    def clusters(self) -> Iterator[npt.NDArray[np.int64]]:
        found = Clusters(len(self._ids))
        for run in self._bands.shared():
            found.connect(run, self._alike, lambda record: xxhash.xxh3_64_digest(self._texts[record].encode()))
        yield from found.groups()

    def _alike(self, record: int, other: int) -> bool:
        return self._likeness(record, other) >= self._how.threshold

    def _likeness(self, record: int, other: int) -> float:
        a, b = self._texts[record], self._texts[other]
        if a == b:
            return 1.0
        if _numbers(a) != _numbers(b):
            return 0.0
        return self._text_likeness(a, b)

    def _text_likeness(self, a: str, b: str) -> float:
        return min(likeness(part, other) for part, other in zip(a.split(_PART), b.split(_PART), strict=True))

    def require_small(self, group: npt.NDArray[np.int64]) -> None:
        """Raise ToolkitError for a cluster that looks like boilerplate."""
        size, rows = len(group), len(self._ids)
        if self._how.allow_large or size <= max(_LARGE_SIZE, _LARGE_SHARE * rows):
            return
        name = min(self._ids[record] for record in group.tolist())
        shown = " ".join(self._texts[int(group[0])].split())[:80]
        raise ToolkitError(
            f"cluster {name} holds {size:,} of {rows:,} records ({size / rows:.1%}): {shown}",
            "look at it; `force=True` keeps one record of it all the same",
        )

    def members(self, group: npt.NDArray[np.int64]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each record of a cluster: its id, and what the second pass is to do with it."""
        records = group.tolist()
        ids = {record: self._ids[record] for record in records}
        kept = self._kept(records, ids)
        names = [ids[record] for record in kept]
        cluster = min(ids.values())
        for record in records:
            lost = None
            if record not in kept:
                a, b = self._texts[record], self._texts[kept[0]]
                like = 1.0 if a == b else self._text_likeness(a, b)
                lost = {"reason": EXACT if a == b else NEAR, "to": names, "likeness": like}
            yield ids[record], {"cluster": cluster, "size": len(records), "lost": lost}

    def _kept(self, records: list[int], ids: dict[int, str]) -> list[int]:
        if self._how.contrast is not None:
            shortest = min(records, key=lambda record: (self._reasoning[record], ids[record]))
            longest = min(records, key=lambda record: (-self._reasoning[record], ids[record]))
            few, many = self._reasoning[shortest], self._reasoning[longest]
            if many > few and many >= self._how.contrast * few:
                return [shortest, longest]
        if self._how.keep == "first":
            return [min(records)]
        return [min(records, key=lambda record: (-self._ranks[record], ids[record]))]
