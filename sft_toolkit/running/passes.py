"""Reading: the rows of a block as conversations in bounded batches, and passes over all records that write nothing."""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import ToolkitError
from sft_toolkit.running.options import RunOptions
from sft_toolkit.running.row_reader import RowReader
from sft_toolkit.shards.ids import REPEATED, RepeatedId
from sft_toolkit.shards.sources import Block, Source, copy_streams
from sft_toolkit.stage import Counters, Outcome

_BATCH_ROWS = 256
_FIRST_BATCH_ROWS = 16  # so that slow stages show soon that they move; the others grow from there
_BATCH_BYTES = 16 << 20
DRY_RUN_ROWS = 256
_ROWS_AT_ONCE = 4096

Measured = TypeVar("Measured")
Batches = Iterator[list[Conversation]]


@contextmanager
def readable_twice(run: RunOptions, rows: int = sys.maxsize) -> Iterator[RunOptions]:
    """The run, with a temporary copy of the first `rows` of each stream that it reads: for two passes."""
    if _is_there(run):
        with naming_repeats(run):
            yield run
        return
    with tempfile.TemporaryDirectory(prefix="kolibri-sft-") as folder:
        kept = replace(run, copies=copy_streams(Source(run.inputs).streams, Path(folder), rows))
        with naming_repeats(kept):
            yield kept


def input_blocks(run: RunOptions, spool: Path) -> Iterator[Block]:
    """The blocks of the run's inputs; of a dry run, one block with the first rows."""
    source = Source(run.inputs, run.copies)
    if run.dry_run:
        return itertools.islice(source.blocks(DRY_RUN_ROWS, spool), 1)
    return source.blocks(run.rows_per_shard, spool)


def measure_blocks(
    measure: Callable[[Batches, Outcome], Measured], run: RunOptions
) -> Iterator[tuple[Measured, Counters]]:
    """What `measure` finds in the batches of each block, in order, and the block's account; nothing is written.

    For passes that look at all records before a stage can begin; a dry run looks at the first ones. Raises as
    `run_stage` does.
    """
    work = partial(_measure_block, measure, run.quarantine, run.reader)
    empty = True
    run.reader.meter.begin(None if run.dry_run else Source(run.inputs, run.copies).size)
    with tempfile.TemporaryDirectory(prefix="kolibri-sft-") as spool:
        for measured in run.drive(input_blocks(run, Path(spool)), work):
            empty = False
            yield measured
    if empty:
        raise no_records(run)


def _measure_block(
    measure: Callable[[Batches, Outcome], Measured], quarantine: bool, reader: RowReader, block: Block
) -> tuple[Measured, Counters]:
    outcome = Outcome(quarantine)
    measured = measure(read_batches(block, outcome, reader), outcome)
    block.discard()
    return measured, outcome.counters


def read_batches(block: Block, outcome: Outcome, reader: RowReader) -> Batches:
    """The block's conversations in bounded batches; rows that cannot be read are reported to `outcome`."""
    batch: list[Conversation] = []
    size, rows, limit = 0, 0, _FIRST_BATCH_ROWS
    share = block.size / max(block.rows, 1)
    for row in block.read():
        outcome.counters.records_in += 1
        rows += 1
        conversations = reader.read(row, outcome)
        if not conversations:
            continue
        batch += conversations
        size += row.size
        if len(batch) >= limit or size >= _BATCH_BYTES:
            yield batch
            reader.meter.add(rows, round(rows * share))
            batch, size, rows, limit = [], 0, 0, min(2 * limit, _BATCH_ROWS)
    if batch:
        yield batch
    reader.meter.add(rows, round(rows * share))
    reader.meter.flush()


def no_records(run: RunOptions) -> ToolkitError:
    """The error for inputs without a single record."""
    return ToolkitError(f"{', '.join(run.inputs)}: no records", "is the input empty?")


@contextmanager
def naming_repeats(run: RunOptions) -> Iterator[None]:
    """Say in which lines the id stands that a ledger has seen twice, where the inputs can be read again."""
    try:
        yield
    except RepeatedId as error:
        for identity in filter(None, (error.identity, error.record)) if _is_there(run) else ():
            places = _places(identity, run)
            if len(places) > 1:
                message = f"{places[1]}: record id {identity!r} occurs more than once, first at {places[0]}"
                raise ToolkitError(message, REPEATED) from error
            if places and error.record:
                raise ToolkitError(f"{places[0]}: {error}", error.hint) from error
        raise


def _is_there(run: RunOptions) -> bool:
    return set(run.copies) >= set(Source(run.inputs).streams)


def _places(identity: str, run: RunOptions) -> list[str]:
    """Where the first two records of that id stand."""
    found: list[str] = []
    with tempfile.TemporaryDirectory(prefix="kolibri-sft-") as spool:
        for block in Source(run.inputs, run.copies).blocks(_ROWS_AT_ONCE, Path(spool)):
            for batch in read_batches(block, Outcome(quarantine=True), run.reader):
                found += [conversation.origin for conversation in batch if conversation.id == identity]
            block.discard()
            if len(found) > 1:
                break
    return found
