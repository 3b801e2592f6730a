"""`stats`: what each data set holds, from records, token shards or packed shards, or from records and tokens together.

Records say exchanges, reasoning and labels; token and packed shards say documents, tokens and loss; records given with
either make rows of both. Packed shards know no labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError, UsageError
from sft_toolkit.reporting.dataset_counts import Counts, DataSetCounts, of_documents, of_records, total
from sft_toolkit.running.options import RunOptions
from sft_toolkit.running.passes import Batches, measure_blocks
from sft_toolkit.shards.packed_index import read_index
from sft_toolkit.shards.segments import open_arrow
from sft_toolkit.shards.shard_folder import ShardFolder, is_shard_folder
from sft_toolkit.stage import Counters, Outcome
from sft_toolkit.stages.effort.lengths import CountedLengths
from sft_toolkit.stages.language import DRIFTS, STAYS, UNDECIDED, VERDICT

UNNAMED = "-"
UNMASKED_REASON = "weight 0 in the input"
TOKENS, CHARACTERS = "tokens", "characters"


@dataclass
class Statistics:
    """`documents` are counts of token or packed shards, `records` of records; both empty where none was given.

    `unit`: of reasoning lengths. `packed`: what packed shards alone know, sequences. `counters`: which
    records were read and rejected.
    """

    records: dict[str, DataSetCounts] = field(default_factory=dict)
    documents: dict[str, DataSetCounts] = field(default_factory=dict)
    packed: dict[str, int] = field(default_factory=dict)
    unit: str = CHARACTERS
    counters: Counters = field(default_factory=Counters)

    def to_json(self) -> dict[str, Any]:
        """One object a data set under `datasets`, and their sum under `total`."""
        datasets = sorted({*self.records, *self.documents})
        rejected = {"rejected": dict(sorted(self.counters.rejected.items()))} if self.counters.rejected else {}
        return {
            "datasets": [{"dataset": name, **self.row(name)} for name in datasets],
            "total": {**self.row(None), **self.packed},
            **({"reasoning_unit": self.unit} if self.records else {}),
            **rejected,
        }

    def row(self, dataset: str | None) -> dict[str, Any]:
        """The columns of one data set, or of all where it is None."""
        return {
            **(of_records(_one(self.records, dataset)) if self.records else {}),
            **(of_documents(_one(self.documents, dataset), labelled=not self.packed) if self.documents else {}),
        }


def collect(run: RunOptions, tokenizer: Path | None) -> Statistics:
    """Read all inputs of the run. With `tokenizer`, reasoning is measured in its tokens, else in characters.

    Raises UsageError where both token and packed shards are given, and as `runner.run_stage` does.
    """
    folders = [ShardFolder(given) for given in run.inputs if is_shard_folder(Path(given))]
    kinds = {folder.kind for folder in folders}
    if {"tokens", "packed"} <= kinds:
        raise UsageError("token shards and packed shards: the same tokens would count twice", "give one of the two")
    found = Statistics()
    shards = [folder for folder in folders if folder.kind != "records"]
    others = [given for given in run.inputs if Path(given) not in {folder.path for folder in shards}]
    if others:
        _add_records(found, replace(run, inputs=others), tokenizer)
    for folder in shards:
        if folder.kind == "packed":
            _add_packed(found, folder)
        else:
            _add_tokens(found, folder)
    return found


def _one(counts: Counts, dataset: str | None) -> DataSetCounts:
    return total(counts) if dataset is None else counts.get(dataset, DataSetCounts())


def _add_records(found: Statistics, run: RunOptions, tokenizer: Path | None) -> None:
    lengths = None if tokenizer is None else CountedLengths(str(tokenizer))
    found.unit = CHARACTERS if lengths is None else TOKENS
    for block, counters in measure_blocks(partial(_count_block, lengths), run):
        found.counters.add(counters)
        for name, counts in block.items():
            found.records.setdefault(name, DataSetCounts()).add(counts)
        run.progress(found.counters)


def _count_block(lengths: CountedLengths | None, batches: Batches, outcome: Outcome) -> dict[str, DataSetCounts]:
    found: dict[str, DataSetCounts] = {}
    for batch in batches:
        for conversation, measured in zip(batch, _lengths(lengths, batch), strict=True):
            outcome.counters.records_out += 1
            _count(found.setdefault(conversation.dataset or UNNAMED, DataSetCounts()), conversation, measured)
    return found


def _lengths(source: CountedLengths | None, batch: list[Conversation]) -> Iterator[list[int]]:
    """Of each record, the length of the reasoning of each exchange."""
    if source is not None:
        for measured in source.measure(batch):
            if not isinstance(measured, RecordError):
                yield measured
        return
    for conversation in batch:
        messages = conversation.messages
        yield [
            sum(len((messages[index].reasoning or "").strip()) for index in exchange)
            for exchange in conversation.exchanges()
        ]


def _count(counts: DataSetCounts, conversation: Conversation, lengths: list[int]) -> None:
    counts.records += 1
    counts.exchanges += len(lengths)
    counts.reasoning.update(length for length in lengths if length)
    counts.without_reasoning += lengths.count(0)
    counts.efforts.update(effort or UNNAMED for effort in conversation.efforts())
    counts.difficulties[conversation.difficulty or UNNAMED] += 1
    for message in conversation.messages:
        if message.role != "assistant":
            continue
        counts.turns += 1
        counts.trained_turns += message.trained
        if not message.trained:
            counts.masked[message.mask_reason or UNMASKED_REASON] += 1
        verdict = message.extra.get(VERDICT)
        if isinstance(verdict, dict):
            counts.languages[f"{verdict.get('language')} {_VERDICTS[verdict.get('stays')]}"] += 1


_VERDICTS: dict[bool | None, str] = {True: STAYS, False: DRIFTS, None: UNDECIDED}


def _add_tokens(found: Statistics, folder: ShardFolder) -> None:
    """Only the columns that are counted are read, and none of the tokens."""
    for path in folder.paths:
        with pa.memory_map(str(path)) as source:
            columns = [batch.select(list(_COLUMNS)) for batch in open_arrow(path, source, folder.kind)]
            frame = pl.DataFrame(pa.Table.from_batches(columns)) if columns else pl.DataFrame(schema=_COLUMNS)
            sums = frame.group_by("dataset", "effort").agg(pl.len(), pl.col(_SUMMED).cast(pl.Int64).sum())
        for dataset, effort, documents, tokens, loss_tokens in sums.rows():
            counts = found.documents.setdefault(dataset or UNNAMED, DataSetCounts())
            counts.add(
                DataSetCounts(
                    efforts=Counter({effort or UNNAMED: documents}),
                    documents=documents,
                    tokens=tokens,
                    loss_tokens=loss_tokens,
                )
            )


_SUMMED = ("length", "loss_tokens")
_COLUMNS = {"dataset": pl.String, "effort": pl.String, **dict.fromkeys(_SUMMED, pl.Int32)}


def _add_packed(found: Statistics, folder: ShardFolder) -> None:
    index = read_index(folder.path)
    parts = (index.shares.documents, index.mix.tokens, index.shares.loss_tokens)
    by_code = [np.bincount(index.mix.datasets, weights=part, minlength=len(index.datasets)) for part in parts]
    for name, documents, tokens, loss_tokens in zip(index.datasets, *by_code, strict=True):
        counts = DataSetCounts(documents=int(documents), tokens=int(tokens), loss_tokens=int(loss_tokens))
        found.documents.setdefault(name or UNNAMED, DataSetCounts()).add(counts)
    found.packed["sequences"] = found.packed.get("sequences", 0) + len(index.tokens)
