"""What a filter misses: items planted in copies of the user's own records, and a benchmark of shuffled words."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sft_toolkit.draws import key
from sft_toolkit.labelers.wilson import wilson_interval
from sft_toolkit.stages.choosing.benchmark import BenchmarkIndex, Field, words_of

_NUMBER = re.compile(r"\d+(?:[.,]\d+)+")
_WORD = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*")
_OTHER = str.maketrans(".,", ",.")
KINDS = ("verbatim", "wrapped", "words_1", "words_3", "locale")


@dataclass(frozen=True, slots=True)
class Plant:
    """A field and the text that it was read from."""

    field: Field
    text: str


def recall(
    plants: Sequence[Plant], turns: Sequence[str], index: BenchmarkIndex, count: int, seed: int = 0
) -> dict[str, Any]:
    """Of each kind how many of `count` plants are found, with a 95% interval, and hits of a shuffled benchmark.

    turns: texts of the user's own records, among which the plants are put.
    """
    drawn = sorted(plants, key=lambda plant: key(seed, "plant", plant.field.item, plant.field.field))
    found: dict[str, Any] = {}
    for kind in KINDS:
        fitting = [plant for plant in drawn if kind != "locale" or _NUMBER.search(plant.text)][:count]
        hits = sum(_is_found(plant, kind, turns, index, seed) for plant in fitting)
        low, high = wilson_interval(hits, len(fitting)) if fitting else (0.0, 1.0)
        share = hits / len(fitting) if fitting else None
        found[kind] = {"n": len(fitting), "found": hits, "recall": share, "low": low, "high": high}
    return {**found, "shuffled": shuffled_hits(index, turns, seed)}


def _is_found(plant: Plant, kind: str, turns: Sequence[str], index: BenchmarkIndex, seed: int) -> bool:
    draw = random.Random(key(seed, kind, plant.field.item, plant.field.field))
    hosts = turns or [""]
    host = hosts[draw.randrange(len(hosts))]
    text = planted(plant.text, kind, host, [word for turn in hosts[:50] for word in words_of(turn).words], draw)
    return any(hit.field.item == plant.field.item for hit in index.find(text))


def planted(text: str, kind: str, host: str, words: Sequence[str], draw: random.Random) -> str:
    """The text as a plant of that kind: inside `host`, with some of its words replaced, its numbers otherwise."""
    if kind == "wrapped":
        cut = host.find(" ", len(host) // 2) + 1
        return f"{host[:cut]} {text} {host[cut:]}"
    if kind == "locale":
        return _NUMBER.sub(lambda match: match[0].translate(_OTHER), text)
    if kind.startswith("words_"):
        places = list(_WORD.finditer(text))
        chosen = draw.sample(places, min(int(kind.removeprefix("words_")), len(places)))
        for place in sorted(chosen, key=lambda match: -match.start()):
            instead = words[draw.randrange(len(words))] if words else "wort"
            text = f"{text[: place.start()]}{instead}{text[place.end() :]}"
    return text


def shuffled_hits(index: BenchmarkIndex, turns: Sequence[str], seed: int) -> dict[str, int]:
    """Hits of items whose words were shuffled: whatever they hit, it was no copy."""
    fields = []
    for field in index.fields:
        words = list(field.words)
        random.Random(key(seed, "shuffle", field.item, field.field)).shuffle(words)
        if not field.is_short and tuple(words) != field.words:
            fields.append(Field(field.item, field.file, field.field, tuple(words)))
    shuffled = BenchmarkIndex(fields, index.lowest)
    hits = sum(bool(shuffled.find(turn)) for turn in turns)
    return {"items": len(fields), "turns": len(turns), "hits": hits}
