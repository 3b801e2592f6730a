"""`decontaminate`: what a benchmark asks and answers is not to be trained."""

from __future__ import annotations

import heapq
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import xxhash

from sft_toolkit.choices import Contaminated, require_choices
from sft_toolkit.conversation import ROLES, Conversation, Message
from sft_toolkit.draws import key
from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.formats.paths import PathError, places
from sft_toolkit.json_text import encode, encode_text
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.passes import Batches, measure_blocks
from sft_toolkit.shards.ids import IdLedger
from sft_toolkit.shards.sources import Source
from sft_toolkit.stage import Outcome, Stage
from sft_toolkit.stages.choosing.benchmark import BenchmarkIndex, Field, words_of
from sft_toolkit.stages.choosing.facts import Facts, FactWriter
from sft_toolkit.stages.choosing.planting import Plant, recall
from sft_toolkit.stages.choosing.prompts import prompt_key
from sft_toolkit.stages.choosing.two_passes import look_then_apply

CONTAMINATION, CONTAMINATED = "contamination", "contaminated"
SEARCHED = ("user", "assistant")
_BOILERPLATE_SHARE, _BOILERPLATE_RECORDS = 0.01, 20
_ROWS_AT_ONCE = 4096
_HOSTS = 1000


@dataclass(frozen=True)
class DecontaminateOptions:
    """`against`: files of the benchmark; `fields`: those of its items that are searched, one by one.

    Raises UsageError for a role that does not exist and a score that is no share.
    """

    against: tuple[str, ...]
    fields: tuple[str, ...]
    id_field: str = "id"
    reject: Contaminated = "record"
    min_score: float = 0.85
    roles: tuple[str, ...] = SEARCHED
    planted: int = 0
    allow_boilerplate: bool = False

    def __post_init__(self) -> None:
        require_choices(self)
        if not 0.5 < self.min_score <= 1:
            raise UsageError(f"`min_score` {self.min_score}: not above 0.5 and up to 1", "0.85 is usual")
        for role in self.roles:
            if role not in ROLES:
                raise UsageError(f"`roles` {role}: unknown", f"choose among {', '.join(ROLES)}")


@dataclass(frozen=True)
class DecontaminateStage(Stage):
    """Applies the hits of the first pass, by record and, with reject="prompt", by prompt."""

    how: DecontaminateOptions
    benchmark: str
    hits: Facts
    prompts: Facts

    name: ClassVar[str] = "decontaminate"

    @property
    def draws(self) -> bool:
        return True

    def options(self) -> dict[str, Any]:
        names = ("fields", "id_field", "reject", "min_score", "roles", "allow_boilerplate")
        return {**{name: getattr(self.how, name) for name in names}, "benchmark": self.benchmark}

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        for conversation in batch:
            hits = self.hits.get(conversation.id) or []
            others = self.prompts.get(prompt_key(conversation, None)) if self.how.reject == "prompt" else None
            kept = self._kept(conversation, hits, others)
            if kept is None:
                items = tuple(dict.fromkeys(hit["item"] for hit in hits)) or tuple(others or ())
                conversation.extra[CONTAMINATION] = hits
                outcome.drop(conversation, CONTAMINATED, _sentence(hits, items), partner=items)
            else:
                kept.extra[CONTAMINATION] = hits
                kept.provenance.append(self.stamp)
                outcome.note("exchanges_cut", len(kept.messages) < len(conversation.messages))
                yield kept

    def _kept(
        self, conversation: Conversation, hits: list[dict[str, Any]], others: list[str] | None
    ) -> Conversation | None:
        if not hits and not others:
            return conversation
        match self.how.reject:
            case "none":
                return conversation
            case "exchange":
                return _before(conversation, min(hit["turn"] for hit in hits))
        return None


def run_decontaminate(how: DecontaminateOptions, run: RunOptions) -> Summary:
    """Reject what overlaps with the benchmark. The summary's facts hold hits by kind and role, and `planted`.

    Raises ToolkitError for a benchmark without items or fields, and for an item that hits more than a hundredth of the
    records, unless `allow_boilerplate`; else as `run_stage` does.
    """
    plants = read_benchmark(how)
    return look_then_apply(partial(_decide, how, plants), run)


def read_benchmark(how: DecontaminateOptions) -> list[Plant]:
    """The fields of all items with their texts. Raises ToolkitError where there are none."""
    found: list[Plant] = []
    items = 0
    with tempfile.TemporaryDirectory(prefix="kolibri-sft-") as spool:
        for block in Source(list(how.against)).blocks(_ROWS_AT_ONCE, Path(spool)):
            for row in block.read():
                if row.error is not None or not isinstance(row.record, dict):
                    raise ToolkitError(f"{row.origin}: no JSON object", "a benchmark has one item a line")
                items += 1
                found += _plants(row.record, row.origin, how)
            block.discard()
    if not items:
        raise ToolkitError(f"{', '.join(how.against)}: no items", "is the benchmark empty?")
    if not found:
        raise ToolkitError(f"{', '.join(how.against)}: no item has a text in {', '.join(how.fields)}", "see `field`")
    return found


def _plants(item: dict[str, Any], origin: str, how: DecontaminateOptions) -> Iterator[Plant]:
    file, _, line = origin.rpartition(":")
    given = item.get(how.id_field)
    name = f"{Path(file).name}:{line}" if given is None else given if isinstance(given, str) else encode_text(given)
    for path in how.fields:
        text = _text(item, path)
        words = words_of(text).words
        if words:
            yield Plant(Field(name, file, path, words), text)


def _text(item: dict[str, Any], path: str) -> str:
    try:
        values = [place.value for place in places(item, path)]
    except PathError:
        return ""
    return "\n".join(_flat(values))


def _flat(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _flat(each)
    elif isinstance(value, dict):
        yield from _flat([each for name, each in value.items() if name in ("content", "text", "value")])
    elif value is not None:
        yield value if isinstance(value, str) else encode_text(value)


@dataclass
class _Looked:
    """What one block holds: hits by record id, prompts of records with hits, some turns of records without."""

    ids: list[str] = field(default_factory=list)
    hits: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    prompts: dict[str, list[str]] = field(default_factory=dict)
    hosts: list[tuple[int, str]] = field(default_factory=list)


def _decide(
    how: DecontaminateOptions, plants: list[Plant], run: RunOptions, folder: Path
) -> tuple[Stage, dict[str, Any]]:
    index = BenchmarkIndex([plant.field for plant in plants], how.min_score)
    hits, prompts, ledger, tally = FactWriter(folder, "hits"), FactWriter(folder, "prompts"), IdLedger(), _Tally()
    hosts: list[tuple[int, str]] = []
    for looked, counters in measure_blocks(partial(_look, how, index), run):
        ledger.add(looked.ids)
        tally.add(looked)
        for name, found in looked.hits.items():
            hits.add(name, found)
        for prompt, items in looked.prompts.items():
            prompts.add(prompt, items)
        hosts = heapq.nsmallest(_HOSTS, [*hosts, *looked.hosts])
        run.progress(counters)
    tally.require_no_boilerplate(how)
    facts = {**tally.to_json(), "too_short_to_tell": sum(plant.field.is_short for plant in plants)}
    if how.planted:
        long = [plant for plant in plants if not plant.field.is_short]
        facts["planted"] = recall(long, [text for _, text in hosts], index, how.planted)
    digest = xxhash.xxh3_128_hexdigest(encode([[plant.field.item, plant.field.field, plant.text] for plant in plants]))
    return DecontaminateStage(how, digest, hits.save(), prompts.save()), facts


def _look(how: DecontaminateOptions, index: BenchmarkIndex, batches: Batches, outcome: Outcome) -> _Looked:
    looked = _Looked()
    for batch in batches:
        for conversation in batch:
            looked.ids.append(conversation.id)
            found = sorted(_hits(conversation, how, index), key=lambda hit: (-hit["score"], hit["turn"], hit["item"]))
            if found:
                looked.hits[conversation.id] = found
                looked.prompts[prompt_key(conversation, None)] = list(dict.fromkeys(hit["item"] for hit in found))
            elif how.planted:
                turns = [message.text for message in conversation.messages if message.role in SEARCHED]
                looked.hosts += [
                    (key(0, "host", conversation.id, turn), text) for turn, text in enumerate(turns) if text
                ]
    looked.hosts = heapq.nsmallest(_HOSTS, looked.hosts)
    return looked


def _hits(conversation: Conversation, how: DecontaminateOptions, index: BenchmarkIndex) -> Iterator[dict[str, Any]]:
    for turn, message in enumerate(conversation.messages):
        if message.role not in how.roles:
            continue
        for part, text in _parts(message):
            for hit in index.find(text):
                yield {
                    "item": hit.field.item,
                    "file": hit.field.file,
                    "field": hit.field.field,
                    "turn": turn,
                    "role": message.role,
                    "start": hit.start,
                    "end": hit.end,
                    "score": hit.score,
                    "how": hit.how,
                    **({} if part == "content" else {"part": part}),
                }


def _parts(message: Message) -> Iterator[tuple[str, str]]:
    """The texts of a message that are searched, each for itself."""
    yield "content", message.text
    if message.reasoning:
        yield "reasoning", message.reasoning
    for call in message.tool_calls:
        yield "arguments", "\n".join(_strings(call.arguments))


def _strings(value: Any) -> Iterator[str]:
    """The texts inside arguments."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)


def _before(conversation: Conversation, turn: int) -> Conversation | None:
    """The record up to the exchange that holds this turn; None where no answer is left."""
    starts = [exchange.start for exchange in conversation.exchanges() if exchange.start <= turn]
    messages = conversation.messages[: starts[-1]] if starts else []
    if not any(message.role == "assistant" for message in messages):
        return None
    return replace(conversation, messages=messages)


def _sentence(hits: list[dict[str, Any]], items: Iterable[str]) -> str:
    if not hits:
        return f"another record with this prompt overlaps with {', '.join(items)}"
    best = hits[0]
    where = f"characters {best['start']} to {best['end']} of message {best['turn']} ({best['role']})"
    return f"{best['item']}, {best['field']}: {where}, {best['score']:.2f}, {best['how']}"


class _Tally:
    """Counts for the summary, and of records by item."""

    def __init__(self) -> None:
        self.records = 0
        self._by_how: Counter[str] = Counter()
        self._by_role: Counter[str] = Counter()
        self._by_item: Counter[str] = Counter()

    def add(self, looked: _Looked) -> None:
        self.records += len(looked.ids)
        for hits in looked.hits.values():
            self._by_how.update(hit["how"] for hit in hits)
            self._by_role.update(hit["role"] for hit in hits)
            self._by_item.update({hit["item"] for hit in hits})

    def require_no_boilerplate(self, how: DecontaminateOptions) -> None:
        for item, count in sorted(self._by_item.items(), key=lambda entry: (-entry[1], entry[0]))[:1]:
            if how.allow_boilerplate or count < max(_BOILERPLATE_RECORDS, _BOILERPLATE_SHARE * self.records + 1e-9):
                return
            share = count / self.records
            raise ToolkitError(
                f"item {item} hits {count:,} of {self.records:,} records ({share:.1%}): it looks like boilerplate",
                "take it out of the benchmark, or reject them all the same with `force=True`",
            )

    def to_json(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "hits": sum(self._by_how.values()),
            "hits_by_how": dict(sorted(self._by_how.items())),
            "hits_by_role": dict(sorted(self._by_role.items())),
        }
