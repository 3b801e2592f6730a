"""The first pass of `pack`: find every document of the token shards, decide what becomes of over-long ones, shuffle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sft_toolkit.choices import Overlong
from sft_toolkit.draws import keys
from sft_toolkit.errors import RecordError, ToolkitError
from sft_toolkit.running.options import RunOptions
from sft_toolkit.shards.documents import DOCUMENT, ScannedBatch, scan
from sft_toolkit.shards.output import OutputFolder
from sft_toolkit.shards.writer import require_checksum
from sft_toolkit.stage import Counters, Rejection

TOO_LONG, EMPTY, NO_TRAINED_TOKENS, TRUNCATED = "overlong", "empty", "no_trained_tokens", "truncated"


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """What decides which documents are packed and in which order. `seed` is None where input order is kept."""

    capacity: int
    overlong: Overlong
    seed: int | None


@dataclass(frozen=True, slots=True)
class Corpus:
    """The documents to pack, in input order. documents: DOCUMENT[n]; datasets: names of their codes."""

    documents: NDArray[np.void]
    datasets: list[str]
    counters: Counters


def scan_shards(
    shards: list[tuple[Path, str]], options: ScanOptions, folder: OutputFolder | None, run: RunOptions
) -> Corpus:
    """Scan token shards, each with its checksum; what is rejected is listed in `folder`, if there is one.

    Raises RecordError for an over-long document, naming it, where that is the user's choice.
    """
    parts: list[NDArray[np.void]] = []
    codes: dict[str, int] = {}
    counters = Counters()
    known = [(path, written if run.checksums else None) for path, written in shards]
    for found in run.drive(enumerate(known), partial(_scan_shard, options, folder, run.quarantine)):
        _recode(found.documents, found.datasets, codes)
        parts.append(found.documents)
        counters.add(found.counters)
        run.progress(counters)
    return Corpus(np.concatenate([np.empty(0, DOCUMENT), *parts]), list(codes), counters)


def shuffled(documents: NDArray[np.void], name: Callable[[np.void], str]) -> NDArray[np.int64]:
    """Order of documents by key, equal keys by id: the same however they came and were sharded.

    name: gives a document's id. Raises ToolkitError where two documents share an id.
    """
    order = np.argsort(documents["key"], kind="stable")
    ordered = documents["key"][order]
    for place in np.flatnonzero(ordered[1:] == ordered[:-1]):
        first, second = (name(documents[index]) for index in order[place : place + 2])
        if first == second:
            raise ToolkitError(
                f"document id {first!r} occurs more than once",
                "the shuffle depends on ids: make them unique, or keep input order with `shuffle=False`",
            )
        if first > second:
            order[place : place + 2] = order[[place + 1, place]]
    return order


def length_when_cut(loss_mask: NDArray[np.bool_], capacity: int) -> int:
    """Tokens up to the end of the last trained run that `capacity` tokens hold whole: what follows carries no loss.

    loss_mask: bool[n] of the whole document, n > capacity. 0 where no run is whole.
    """
    ends = np.flatnonzero(loss_mask[:capacity] & ~loss_mask[1 : capacity + 1]) + 1
    return int(ends[-1]) if ends.size else 0


def _scan_shard(
    options: ScanOptions,
    folder: OutputFolder | None,
    quarantine: bool,
    numbered: tuple[int, tuple[Path, str | None]],
) -> Corpus:
    number, (path, written) = numbered
    if written is not None:
        require_checksum(path, written)
    codes: dict[str, int] = {}
    parts = [np.empty(0, DOCUMENT)]
    policy = _Policy(options, path, quarantine)
    for batch in scan(path, number):
        _recode(batch.documents, batch.datasets, codes)
        if options.seed is not None:
            batch.documents["key"] = keys(options.seed, batch.ids.to_pylist(), "pack")
        parts.append(policy.admit(batch))
    if folder is not None:
        folder.reject(number, policy.rejections)
    return Corpus(np.concatenate(parts), list(codes), policy.counters)


def _recode(documents: NDArray[np.void], datasets: list[str], codes: dict[str, int]) -> None:
    """Replace codes of `datasets` by those of `codes`, which grows by what it lacks."""
    wanted = np.array([codes.setdefault(name, len(codes)) for name in datasets], np.int32)
    if len(documents):
        documents["dataset"] = wanted[documents["dataset"]]


class _Policy:
    """Decides document by document, and keeps account."""

    def __init__(self, options: ScanOptions, path: Path, quarantine: bool) -> None:
        self._capacity = options.capacity
        self._overlong = options.overlong
        self._path = path
        self._quarantine = quarantine
        self.counters = Counters()
        self.rejections: list[Rejection] = []

    def admit(self, batch: ScannedBatch) -> NDArray[np.void]:
        """The documents of a batch that are packed; over-long ones cut where that is the choice."""
        lengths = batch.documents["length"]
        odd = np.flatnonzero((lengths < 1) | (lengths > self._capacity))
        kept = np.ones(len(lengths), bool)
        for row in odd.tolist():
            kept[row] = self._admit_odd(batch, row)
        self.counters.records_in += len(lengths)
        return batch.documents[kept]

    def _admit_odd(self, batch: ScannedBatch, row: int) -> bool:
        document = batch.documents[row]
        length = int(document["length"])
        if not length:
            return self._reject(batch, row, EMPTY, "it has no tokens")
        too_long = f"{length:,} tokens, more than the capacity of {self._capacity:,}"
        if self._overlong == "error" and not self._quarantine:
            raise RecordError(
                TOO_LONG,
                f"{self._path}: document {batch.ids[row].as_py()!r} has {too_long}",
                "choose `overlong` drop or truncate, or a larger `capacity`",
            )
        if self._overlong != "truncate":
            return self._reject(batch, row, TOO_LONG, too_long)
        loss_mask = batch.loss_mask(row)
        kept = length_when_cut(loss_mask, self._capacity)
        if not kept:
            return self._reject(batch, row, NO_TRAINED_TOKENS, f"{too_long}; no trained turn of it fits whole")
        document["length"], document["loss_tokens"] = kept, np.count_nonzero(loss_mask[:kept])
        self.counters.notes[TRUNCATED] += 1
        return True

    def _reject(self, batch: ScannedBatch, row: int, reason: str, detail: str) -> bool:
        self.counters.rejected[reason] += 1
        record = {"id": batch.ids[row].as_py(), "length": int(batch.documents["length"][row])}
        self.rejections.append(Rejection(str(self._path), reason, detail, record))
        return False
