"""A folder of shards is whole or refused; ids that occur twice are reported."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.shards.atomic import atomic_path
from sft_toolkit.shards.ids import IdLedger
from sft_toolkit.shards.output import BlockReport, OutputFolder, build_manifest
from sft_toolkit.shards.schemas import TOKENS
from sft_toolkit.shards.shard_folder import ShardFolder
from sft_toolkit.shards.writer import describe, shard_writer
from sft_toolkit.stage import Counters, Rejection

PINS = {"stage": "x", "options_hash": "1"}


def token_row(number: int, length: int) -> dict[str, object]:
    return {
        "id": f"r{number}",
        "dataset": None,
        "effort": None,
        "input_ids": np.arange(length, dtype=np.int32),
        "loss_mask": np.arange(length) % 3 == 1,
        "length": length,
        "loss_tokens": int((np.arange(length) % 3 == 1).sum()),
    }


def write_block(folder: OutputFolder, index: int, lengths: list[int]) -> BlockReport:
    path = folder.shard_path(index)
    with shard_writer(path, TOKENS, folder.unfinished) as writer:
        for number, length in enumerate(lengths):
            writer.write(token_row(number, length))
    report = BlockReport(index, describe(path, writer), Counters(len(lengths), len(lengths)))
    folder.report(report, [])
    return report


def finish(folder: OutputFolder, reports: list[BlockReport]) -> None:
    folder.complete(build_manifest("tokens", PINS, reports, Counters()))


@given(lengths=st.lists(st.integers(0, 70), max_size=30))
def test_a_token_shard_holds_every_row_as_it_was_written(
    lengths: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("shard") / "x.arrow"
    with shard_writer(path, TOKENS) as writer:
        for number, length in enumerate(lengths):
            writer.write(token_row(number, length))
    table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    assert table.schema == TOKENS
    assert table.column("length").to_pylist() == lengths
    assert table.column("input_ids").to_pylist() == [list(range(length)) for length in lengths]
    assert table.column("loss_mask").to_pylist() == [[i % 3 == 1 for i in range(length)] for length in lengths]
    assert (writer.rows, writer.tokens) == (len(lengths), sum(lengths))


def test_a_long_shard_is_written_in_several_record_batches(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    with shard_writer(path, TOKENS) as writer:
        for number in range(1500):
            writer.write(token_row(number, 3))
    assert pa.ipc.open_file(pa.memory_map(str(path))).num_record_batches == 2


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError), shard_writer(tmp_path / "x.arrow", TOKENS) as writer:
        writer.write(token_row(0, 3))
        raise ValueError
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match="no space left"), atomic_path(tmp_path / "x") as temporary:
        temporary.symlink_to("/dev/full")
        with temporary.open("wb", buffering=0) as file:
            file.write(b"x")
    assert not (tmp_path / "x").exists()


def test_a_folder_without_its_manifest_is_unfinished(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path / "out")
    folder.prepare(PINS, force=False, resume=False)
    write_block(folder, 0, [3])
    with pytest.raises(ToolkitError, match="unfinished"):
        ShardFolder(tmp_path / "out")


def test_a_finished_folder_lists_its_shards_and_holds_no_notes_of_progress(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path)
    folder.prepare(PINS, force=False, resume=False)
    finish(folder, [write_block(folder, 0, [3, 4]), write_block(folder, 1, [5])])
    found = ShardFolder(tmp_path, kind="tokens")
    assert [path.name for path in found.paths] == ["part-00000.arrow", "part-00001.arrow"]
    assert found.rows == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", "part-00000.arrow", "part-00001.arrow"]


def test_a_shard_cut_after_the_fact_is_refused(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path)
    folder.prepare(PINS, force=False, resume=False)
    finish(folder, [write_block(folder, 0, [3])])
    path = folder.shard_path(0)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ToolkitError, match="missing or cut"):
        _ = ShardFolder(tmp_path).paths


def test_shards_of_another_kind_or_version_are_refused(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path)
    folder.prepare(PINS, force=False, resume=False)
    finish(folder, [write_block(folder, 0, [3])])
    with pytest.raises(ToolkitError, match="holds tokens shards, not packed"):
        ShardFolder(tmp_path, kind="packed")
    manifest = tmp_path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"schema_version":1', '"schema_version":99'))
    with pytest.raises(ToolkitError, match="schema version 99"):
        ShardFolder(tmp_path)


def test_a_block_counts_as_finished_only_with_its_whole_shard(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path)
    folder.prepare(PINS, force=False, resume=False)
    report = write_block(folder, 0, [3, 4])
    assert folder.finished(0) == report
    assert folder.finished(1) is None
    path = folder.shard_path(0)
    path.write_bytes(path.read_bytes()[:-8])
    assert folder.finished(0) is None


def test_another_run_needs_force_and_the_same_run_resume(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path)
    assert folder.prepare(PINS, force=False, resume=False)
    with pytest.raises(UsageError, match="unfinished run"):
        folder.prepare(PINS, force=False, resume=False)
    with pytest.raises(UsageError, match="other inputs or options"):
        folder.prepare({**PINS, "options_hash": "2"}, force=False, resume=True)
    assert folder.prepare(PINS, force=False, resume=True)
    finish(folder, [write_block(folder, 0, [3])])
    with pytest.raises(UsageError, match="finished run"):
        folder.prepare(PINS, force=False, resume=False)
    assert not folder.prepare(PINS, force=False, resume=True)
    assert folder.prepare({**PINS, "options_hash": "2"}, force=True, resume=False)
    assert not folder.shard_path(0).exists()


def test_force_removes_only_what_the_tool_wrote(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"not empty \(it holds thesis.txt\)"):
        OutputFolder(tmp_path).prepare(PINS, force=True, resume=False)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_what_is_rejected_is_written_with_its_reason(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path)
    folder.prepare(PINS, force=False, resume=False)
    info = write_block(folder, 0, [3]).shard
    rejected = [Rejection("x.jsonl:7", "torn_line", "the last line is cut off", '{"a')]
    folder.report(BlockReport(0, info, Counters()), rejected)
    assert (tmp_path / "quarantine" / "part-00000.jsonl").read_text() == (
        '{"origin":"x.jsonl:7","reason":"torn_line","detail":"the last line is cut off","record":"{\\"a"}\n'
    )


def test_an_unwritable_place_is_told_in_words(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        OutputFolder(blocker).prepare(PINS, force=False, resume=False)
    with pytest.raises(ToolkitError) as caught:
        OutputFolder(blocker / "below").prepare(PINS, force=False, resume=False)
    assert isinstance(caught.value.__cause__, OSError) and caught.value.__cause__.errno == errno.ENOTDIR


@given(blocks=st.lists(st.lists(st.text(max_size=2), max_size=6), max_size=8))
def test_the_ledger_names_an_id_that_was_there_before(blocks: list[list[str]]) -> None:
    ledger, seen = IdLedger(), set()
    for block in blocks:
        repeated = [text for place, text in enumerate(block) if text in seen or text in block[:place]]
        if repeated:
            with pytest.raises(ToolkitError) as caught:
                ledger.add(block)
            assert any(repr(text) in caught.value.message for text in repeated)
            return
        ledger.add(block)
        seen.update(block)


def test_a_folder_with_what_is_not_ours_is_refused_before_anything_is_removed(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path)
    folder.prepare(PINS, force=False, resume=False)
    finish(folder, [write_block(folder, 0, [3])])
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"it holds notes\.txt"):
        folder.prepare(PINS, force=True, resume=False)
    assert ShardFolder(tmp_path).rows == 1
    (tmp_path / "notes.txt").unlink()
    assert folder.prepare(PINS, force=True, resume=False)
    assert [path.name for path in tmp_path.iterdir()] == [".progress"]


def test_what_no_run_may_write_is_refused_without_its_pins(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path / "out")
    folder.require_usable(force=False, resume=False)
    folder.prepare(PINS, force=False, resume=False)
    with pytest.raises(UsageError, match="holds an unfinished run"):
        folder.require_usable(force=False, resume=False)
    folder.require_usable(force=False, resume=True)
    folder.require_usable(force=True, resume=False)
    assert (tmp_path / "out/.progress/run.json").is_file(), "nothing is cleared yet"
    with pytest.raises(ToolkitError, match="/proc/nowhere"):
        OutputFolder(Path("/proc/nowhere/out")).require_usable(force=False, resume=False)
