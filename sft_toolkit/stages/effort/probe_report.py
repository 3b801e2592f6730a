"""What the replies of `effort probe` say, by data set: lengths at each level, their order, thinking at `none`."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sft_toolkit.conversation import EFFORTS, Conversation, Message
from sft_toolkit.errors import RecordError
from sft_toolkit.labelers.effort_obedience import Estimate, Interval, Obedience, median, obedience
from sft_toolkit.labelers.wilson import wilson_interval
from sft_toolkit.shards.sources import Source
from sft_toolkit.stages.effort.lengths import CountedLengths
from sft_toolkit.stages.effort.probe import PROBE

ALL = "all data sets"
_ROWS_AT_ONCE = 1024
LENGTHS_HEADER = ("data set", "level", "replies", "think", "cut", "median", "95% interval")
ORDER_HEADER = ("data set", "prompts", "low < medium < high", "95% interval", "high / low", "95% interval")


@dataclass
class Replies:
    """Replies of one data set. `lengths`: of reasoning, by level and prompt, one for each sample."""

    lengths: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    thinking: Counter[str] = field(default_factory=Counter)
    cut: Counter[str] = field(default_factory=Counter)

    def add(self, prompt: str, level: str, length: int, cut: bool) -> None:
        self.lengths[level][prompt].append(length)
        self.thinking[level] += length > 0
        self.cut[level] += cut

    def replies(self, level: str) -> int:
        return sum(map(len, self.lengths[level].values()))

    def median(self, level: str) -> Estimate:
        """Over prompts, of the median of a prompt's samples."""
        return median([float(np.median(samples)) for samples in self.lengths[level].values()])

    @property
    def obedience(self) -> Obedience:
        return obedience(self.lengths)


def read_replies(output: str, tokenizer: Path | None) -> dict[str, Replies]:
    """The replies in the output of a probe, by data set, and over all; lengths in tokens, or else in characters.

    Rows are taken as they were written, not read as records of unknown origin: what a model writes may look like
    reasoning in two places, and counts all the same.
    """
    lengths = None if tokenizer is None else CountedLengths(str(tokenizer))
    found: dict[str, Replies] = {}
    with tempfile.TemporaryDirectory(prefix="kolibri-sft-") as spool:
        for block in Source([output]).blocks(_ROWS_AT_ONCE, Path(spool)):
            records = [row.record for row in block.read()]
            for record, length in zip(records, _lengths(records, lengths), strict=True):
                probe = record[PROBE]
                for name in (record.get("dataset") or "-", ALL):
                    found.setdefault(name, Replies()).add(probe["prompt"], probe["level"], length, probe["cut"])
    return found


def _lengths(records: list[dict[str, Any]], source: CountedLengths | None) -> list[int]:
    """Of the reasoning of each reply, the last message of its record."""
    texts = [(record["messages"][-1].get("reasoning") or "").strip() for record in records]
    if source is None:
        return list(map(len, texts))
    replies = [Conversation("", [Message("user"), Message("assistant", reasoning=text)]) for text in texts]
    return [0 if isinstance(measured, RecordError) else sum(measured) for measured in source.measure(replies)]


def lengths_rows(found: dict[str, Replies]) -> list[tuple[Any, ...]]:
    """One row of LENGTHS_HEADER per data set and level, those over all last."""
    rows = []
    for name in _in_order(found):
        replies = found[name]
        for level in EFFORTS:
            n = replies.replies(level)
            if n:
                length = replies.median(level)
                thinks = f"{replies.thinking[level]:,} of {n:,}"
                rows.append((name, level, n, thinks, replies.cut[level], round(length.value), _shown(length.interval)))
    return rows


def order_rows(found: dict[str, Replies]) -> list[tuple[Any, ...]]:
    """One row of ORDER_HEADER per data set, that over all last."""
    rows = []
    for name in _in_order(found):
        order = found[name].obedience
        share, ratio = order.ordered_interval, order.ratio
        interval = None if ratio is None else ratio.interval
        rows.append(
            (
                name,
                order.prompts,
                order.ordered,
                "-" if share is None else f"{share.low:.2f} to {share.high:.2f} of them",
                "-" if ratio is None else f"{ratio.value:.2f}x",
                "-" if interval is None else f"{interval.low:.2f} to {interval.high:.2f}",
            )
        )
    return rows


def to_json(found: dict[str, Replies], unit: str) -> dict[str, Any]:
    """All of it, for programs."""
    return {"unit": unit, "datasets": {name: _one(found[name]) for name in _in_order(found)}}


def _one(replies: Replies) -> dict[str, Any]:
    order = replies.obedience
    levels = {}
    for level in EFFORTS:
        n = replies.replies(level)
        if n:
            length = replies.median(level)
            levels[level] = {
                "replies": n,
                "think": replies.thinking[level],
                "think_interval": list(wilson_interval(replies.thinking[level], n)),
                "cut": replies.cut[level],
                "median": length.value,
                "median_interval": _listed(length.interval),
            }
    return {
        "levels": levels,
        "prompts": order.prompts,
        "ordered": order.ordered,
        "ordered_interval": _listed(order.ordered_interval),
        "high_over_low": None if order.ratio is None else order.ratio.value,
        "high_over_low_interval": None if order.ratio is None else _listed(order.ratio.interval),
    }


def _in_order(found: dict[str, Replies]) -> list[str]:
    return [*sorted(name for name in found if name != ALL), *([ALL] if ALL in found else [])]


def _listed(interval: Interval | None) -> list[float] | None:
    return None if interval is None else list(interval)


def _shown(interval: Interval | None) -> str:
    return "too few" if interval is None else f"{interval.low:,.0f} to {interval.high:,.0f}"
