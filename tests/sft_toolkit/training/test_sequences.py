"""Packed folders as the trainer reads them, whole and damaged."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sft_toolkit.errors import ToolkitError
from sft_toolkit.packers import FILLER
from sft_toolkit.training.sequences import NOTHING, PackedFolder
from tests.sft_toolkit.training.tiny import counting_documents, write_packed
from tests.token_shards import Document


@pytest.fixture
def copy(packed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(packed, tmp_path / "copy"))


def test_every_sequence_reads_as_pyarrow_reads_it(packed: Path) -> None:
    rows = pa.concat_tables(pa.ipc.open_file(path).read_all() for path in sorted(packed.glob("*.arrow"))).to_pylist()
    folder = pickle.loads(pickle.dumps(PackedFolder(packed)))
    assert len(folder) == len(rows) > 8
    for number, row in enumerate(rows):
        found = folder.sequence(number)
        assert found.input_ids.tolist() == row["input_ids"]
        assert found.loss_mask.tolist() == row["loss_mask"]
        assert found.cu_seqlens.tolist() == row["cu_seqlens"]
        assert found.ids == row["ids"]
        assert folder.longest_document(number) == np.diff(row["cu_seqlens"]).max()


def test_tokens_are_views_of_the_mapped_file(packed: Path) -> None:
    sequence = PackedFolder(packed).sequence(3)
    assert not sequence.input_ids.flags.owndata
    assert not sequence.input_ids.flags.writeable


def test_where_a_plan_has_filler_there_is_one_token_without_loss(packed: Path) -> None:
    filler = PackedFolder(packed).sequence(FILLER)
    assert filler is NOTHING
    assert (filler.input_ids.tolist(), filler.loss_mask.tolist(), filler.cu_seqlens.tolist()) == ([0], [False], [0, 1])


def test_a_folder_that_is_no_finished_packed_folder_is_refused(packed: Path, copy: Path, tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match="no shard folder"):
        PackedFolder(tmp_path)
    with pytest.raises(ToolkitError, match="holds tokens shards, not packed shards"):
        PackedFolder(packed.parent / "tokens")
    (copy / "index.parquet").unlink()
    with pytest.raises(ToolkitError, match=r"index\.parquet"):
        PackedFolder(copy)


def test_shards_of_another_schema_version_are_refused(copy: Path) -> None:
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps({**manifest, "schema_version": 99}))
    with pytest.raises(ToolkitError, match="schema version 99, this tool reads 1"):
        PackedFolder(copy)


def test_an_index_of_other_shards_is_refused(copy: Path, tmp_path: Path) -> None:
    other = write_packed(tmp_path, counting_documents(10))
    shutil.copyfile(other / "index.parquet", copy / "index.parquet")
    with pytest.raises(ToolkitError, match="its index does not match its shards"):
        PackedFolder(copy)


def test_a_cut_shard_is_refused_by_its_size_and_a_changed_byte_by_its_checksum(copy: Path) -> None:
    shard = copy / "part-00001.arrow"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    folder = PackedFolder(copy)
    folder.verify([0])
    with pytest.raises(ToolkitError, match=r"part-00001\.arrow: damaged: its bytes do not match the checksum"):
        folder.verify([0, 1])
    shard.write_bytes(content[:-8])
    with pytest.raises(ToolkitError, match="missing or cut"):
        PackedFolder(copy).sequence(len(folder) - 1)


def test_a_sequence_that_its_index_contradicts_is_refused(copy: Path, tmp_path: Path) -> None:
    documents = counting_documents(60)
    masked = [Document(one.id, one.tokens, [False] * len(one.tokens)) for one in documents]
    other = write_packed(tmp_path, masked)
    shutil.copyfile(other / "index.parquet", copy / "index.parquet")
    with pytest.raises(ToolkitError, match="sequence 2 does not match the index"):
        PackedFolder(copy).sequence(2)


def test_a_shard_that_is_no_arrow_file_is_refused(copy: Path) -> None:
    shard = copy / "part-00000.arrow"
    shard.write_bytes(bytes(shard.stat().st_size))
    with pytest.raises(ToolkitError, match=r"part-00000\.arrow: damaged"):
        PackedFolder(copy).sequence(0)


def test_loss_on_the_first_token_of_a_document_is_refused(tmp_path: Path) -> None:
    documents = [Document("a", [1, 2, 3], [False, True, True]), Document("b", [4, 5], [True, False])]
    packed = PackedFolder(write_packed(tmp_path, documents, shuffle=False))
    with pytest.raises(ToolkitError, match="sequence 0 has loss on a document's first token"):
        packed.sequence(0)
