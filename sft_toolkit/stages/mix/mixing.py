"""`mix`: records or token rows of many data sets into one mixture, by token budgets that are met by whole records.

Two passes. The first notes of every row its key, length and ingredient; from the notes alone follows how often each is
taken. The second reads the blocks that something is taken from. Memory holds 26 bytes a row, never the rows.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xxhash
from numpy.typing import NDArray

from sft_toolkit.errors import UsageError
from sft_toolkit.json_text import encode
from sft_toolkit.running.folder_writer import FolderWork, write_folder
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.output_checks import check_stream_options
from sft_toolkit.running.passes import no_records, readable_twice
from sft_toolkit.running.runner import rejection_sink
from sft_toolkit.shards.ids import IdLedger
from sft_toolkit.shards.jsonl import open_sink
from sft_toolkit.shards.output import BlockReport, OutputFolder, rejection_lines
from sft_toolkit.shards.schemas import kind_of
from sft_toolkit.shards.shard_folder import ShardFolder, is_shard_folder, rendering_of
from sft_toolkit.shards.sources import Block, Source
from sft_toolkit.stage import Rejection, StageOptions
from sft_toolkit.stages.mix.choice import NOTE, Account, Choice, choose
from sft_toolkit.stages.mix.copy_ids import CopyIds
from sft_toolkit.stages.mix.datasets import require_datasets
from sft_toolkit.stages.mix.material import BlockNotes, Material, holds_tokens
from sft_toolkit.stages.mix.mixture_file import Mixture
from sft_toolkit.stages.mix.pieces import Lines, Piece, PieceLines, PieceWriter, Portion, pieces
from sft_toolkit.stages.mix.record_rows import Measure, RecordRows
from sft_toolkit.stages.mix.token_rows import TokenRows

_ROWS_PER_STREAMED_BLOCK = 512


@dataclass(frozen=True)
class MixOptions(StageOptions):
    """What is mixed. `measure` counts the tokens of records; `listed` writes a list instead of the rows."""

    mixture: Mixture
    measure: Measure | None = None
    listed: bool = False
    seed: int = 0

    name: ClassVar[str] = "mix"

    def options(self) -> dict[str, Any]:
        identity = self.measure.identity if self.measure else {}
        return {"mixture": self.mixture.to_json(), "seed": self.seed, "lengths": identity}

    @cached_property
    def options_hash(self) -> str:
        """Of the options alone, so that records of earlier mixtures and new ones state the same provenance."""
        return xxhash.xxh3_64_hexdigest(encode(self.options()))


def run_mix(options: MixOptions, run: RunOptions) -> Summary:
    """Mix the inputs of `run` into its output; a dry run does the first pass and reports what would come of it.

    The summary's facts hold the account of each ingredient under `mixture`. Raises UsageError, ToolkitError, and
    RecordError for a faulty record where faults are not quarantined.
    """
    if run.to_folder and options.listed:
        raise UsageError("`listed` writes JSONL", "name a .jsonl file with `output`")
    with readable_twice(run) as kept:
        mixing = _Mixing(options, kept)
        if run.dry_run:
            return mixing.preview()
        return write_folder(mixing) if run.to_folder else mixing.to_stream()


class _Mixing(FolderWork[Piece]):
    """One run: the material, the first pass, and the two ways to write."""

    def __init__(self, options: MixOptions, run: RunOptions) -> None:
        super().__init__(options, run)
        self._options = options
        self._begun = time.monotonic()
        self._source = Source(run.inputs, run.copies, checksums=run.checksums)
        self._material = self._open_material()
        self._accounts: list[Account] = []
        self.kind = kind_of(self._material.schema) or ""

    def inputs(self, known: Sequence[Mapping[str, Any]] = ()) -> list[Any]:
        return self._source.fingerprints(known)

    def tasks(self, folder: OutputFolder, spool: Path) -> Iterator[Piece]:
        _, portions = self._first_pass(spool, folder.reject)
        return pieces(portions, self.rows_per_shard)

    def writer(self, folder: OutputFolder) -> PieceWriter:
        return PieceWriter(self._material, folder)

    @property
    def discard(self) -> Callable[[Piece], None]:
        return Piece.discard

    def finish(self, folder: OutputFolder, shards: list[Path]) -> dict[str, Any]:
        folders = sorted({Path(name).parent for name in self._source.inputs})
        tokens = isinstance(self._material, TokenRows)
        return {
            "mixture": self._options.mixture.to_json(),
            "lengths": self._material.identity,
            "accounts": [account.to_json() for account in self._accounts],
            **(rendering_of([ShardFolder(path) for path in folders if is_shard_folder(path)]) if tokens else {}),
        }

    def facts(self) -> dict[str, Any]:
        return {"mixture": [account.to_json() for account in self._accounts]}

    def tokens(self, reports: list[BlockReport]) -> tuple[int, int]:
        accounts = self._accounts
        return sum(account.got for account in accounts), sum(account.got_loss or 0 for account in accounts)

    def preview(self) -> Summary:
        with tempfile.TemporaryDirectory(prefix="kolibri-sft-") as spool:
            choice, _ = self._first_pass(Path(spool), lambda index, rejections: None)
        self.counters.records_out = int(choice.copies.sum())
        return self._summary(f"{self.stage.name} (dry run)", "nothing")

    def to_stream(self) -> Summary:
        run = self.run
        check_stream_options(run)
        ledger = IdLedger()
        with (
            tempfile.TemporaryDirectory(prefix="kolibri-sft-") as spool,
            open_sink(run.output) as write,
            rejection_sink(run) as write_rejected,
        ):
            _, portions = self._first_pass(
                Path(spool), lambda index, rejections: _write_lines(write_rejected, rejections)
            )
            tasks = pieces(portions, self._rows_per_block)
            lines: Lines
            for lines in run.drive(tasks, PieceLines(self._material, self._options.listed)):
                ledger.add(lines.ids)
                write(lines.data)
                self.counters.records_out += len(lines.ids)
                run.progress(self.counters)
        return self._summary(self.stage.name, run.output)

    def _open_material(self) -> Material:
        mixture, seed = self._options.mixture, self._options.seed
        if holds_tokens(self._source):
            if self._options.measure is not None:
                raise UsageError("token shards have lengths of their own", "leave out `tokenizer` and `length_column`")
            return TokenRows(mixture, seed)
        if self._options.measure is None:
            raise UsageError("budgets count tokens", "give `tokenizer` or `length_column`, or mix token shards")
        return RecordRows(mixture, seed, self._options.measure, self.run.reader, self._options.stamp)

    def _first_pass(
        self, spool: Path, rejected: Callable[[int, list[Rejection]], None]
    ) -> tuple[Choice, Iterator[Portion]]:
        """What is taken, and the portions of all blocks, read anew; the counters come to hold what is left out."""
        run, ledger, copy_ids = self.run, IdLedger(), CopyIds(self._options.seed)
        parts = [np.empty(0, NOTE)]
        datasets: set[str] = set()
        work = partial(_note, self._material, run.quarantine)
        noted: BlockNotes
        for index, noted in enumerate(run.drive(self._source.blocks(self._rows_per_block, spool), work)):
            ledger.add(noted.ids)
            copy_ids.add(noted.ids)
            rejected(index, noted.outcome.rejections)
            self.counters.add(noted.outcome.counters)
            parts.append(noted.notes)
            datasets |= noted.datasets
            run.progress(self.counters)
        if not self.counters.records_in:
            raise no_records(run)
        require_datasets(self._options.mixture, datasets)
        choice = choose(np.concatenate(parts), self._options.mixture)
        self.counters.rejected.update(choice.left_out)
        self.counters.notes["copies"] = int(choice.copies.sum()) - int(np.count_nonzero(choice.copies))
        self.counters.notes = +self.counters.notes
        self._accounts = choice.accounts
        return choice, self._portions(spool, choice.copies, parts[1:], copy_ids)

    def _portions(
        self, spool: Path, copies: NDArray[np.uint32], parts: list[NDArray[np.void]], copy_ids: CopyIds
    ) -> Iterator[Portion]:
        start = 0
        blocks = self._source.blocks(self._rows_per_block, spool)
        for block, notes in zip(blocks, parts, strict=True):
            of_block = copies[start : start + len(notes)]
            yield Portion(block, of_block, notes["length"], copy_ids.occupied(notes["key"], of_block))
            start += len(notes)

    @property
    def _rows_per_block(self) -> int:
        rows = self.run.rows_per_shard
        return rows if self.run.to_folder else min(rows, _ROWS_PER_STREAMED_BLOCK)

    def _summary(self, stage: str, output: str) -> Summary:
        seconds = time.monotonic() - self._begun
        tokens, loss_tokens = self.tokens([])
        facts = self.facts()
        return Summary(stage, output, self.counters, seconds, tokens, facts=facts, loss_tokens=loss_tokens)


def _note(material: Material, quarantine: bool, block: Block) -> BlockNotes:
    noted = material.note(block, quarantine)
    block.discard()
    return noted


def _write_lines(write: Callable[[bytes], Any], rejections: list[Rejection]) -> None:
    for line in rejection_lines(rejections):
        write(line)
