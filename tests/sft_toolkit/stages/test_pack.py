"""`pack` on real token shards: what is packed is what went in, whatever the workers, the shards and the order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sft_toolkit.errors import RecordError, ToolkitError, UsageError
from sft_toolkit.json_text import decode, encode
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.shards.documents import DOCUMENT
from sft_toolkit.shards.packed_index import read_index
from sft_toolkit.shards.shard_folder import ShardFolder
from sft_toolkit.shards.writer import checksum
from sft_toolkit.stages.pack.scan import length_when_cut, shuffled
from sft_toolkit.stages.pack.two_passes import PackOptions, run_pack
from tests.token_shards import Document, random_documents, write_token_folder

CAPACITY = 1000
OPTIONS = PackOptions(capacity=CAPACITY)


def pack(tokens: Path, output: Path, options: PackOptions = OPTIONS, **run: object) -> Summary:
    return run_pack(options, RunOptions(**{"inputs": [str(tokens)], "output": str(output), "workers": 1, **run}))


def rows(folder: Path) -> list[dict[str, object]]:
    return [
        row for path in ShardFolder(folder, "packed").paths for row in pa.ipc.open_file(path).read_all().to_pylist()
    ]


def file_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*")) if path.name != "manifest.json"}


def unpacked(row: dict[str, object]) -> dict[str, tuple[list[int], list[bool]]]:
    """Tokens and mask of each document of a packed row, by id."""
    bounds = row["cu_seqlens"]
    return {
        name: (row["input_ids"][begin:end], row["loss_mask"][begin:end])
        for name, begin, end in zip(row["ids"], bounds[:-1], bounds[1:], strict=True)
    }


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return random_documents(2000)


@pytest.fixture(scope="module")
def tokens(documents: list[Document], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_token_folder(tmp_path_factory.mktemp("tokens") / "T", documents, shards=3)


@pytest.mark.parametrize("method", ["nkf", "bfd"])
def test_every_document_comes_out_once_whole_and_with_its_mask(
    documents: list[Document], tokens: Path, tmp_path: Path, method: str
) -> None:
    pack(tokens, tmp_path / "P", replace(OPTIONS, method=method))
    found = {}
    for row in rows(tmp_path / "P"):
        parts = unpacked(row)
        assert not found.keys() & parts.keys()
        found.update(parts)
    assert found == {document.id: (document.tokens, document.mask) for document in documents}


def test_counts_and_costs_of_a_row_are_those_of_its_documents(tokens: Path, tmp_path: Path) -> None:
    pack(tokens, tmp_path / "P")
    for row in rows(tmp_path / "P"):
        bounds = np.array(row["cu_seqlens"], np.int64)
        assert bounds[0] == 0
        assert row["tokens"] == bounds[-1] == len(row["input_ids"]) == len(row["loss_mask"]) <= CAPACITY
        assert row["documents"] == len(row["ids"]) == len(bounds) - 1
        assert row["loss_tokens"] == sum(row["loss_mask"])
        assert row["cost"] == (np.diff(bounds) ** 2).sum()


def test_the_index_says_of_each_sequence_what_its_shard_says(
    documents: list[Document], tokens: Path, tmp_path: Path
) -> None:
    pack(tokens, tmp_path / "P", rows_per_shard=50)
    table = pq.read_table(tmp_path / "P" / "index.parquet")
    assert table.column_names[:6] == ["shard", "row", "tokens", "documents", "loss_tokens", "cost"]
    datasets = {document.id: document.dataset or "" for document in documents}
    paths = ShardFolder(tmp_path / "P").paths
    assert len(paths) > 2
    shards = [pa.ipc.open_file(path).read_all().to_pylist() for path in paths]
    for entry in table.to_pylist():
        row = shards[entry["shard"]][entry["row"]]
        assert all(entry[name] == row[name] for name in ("tokens", "documents", "loss_tokens", "cost"))
        expected: dict[str, int] = {}
        for name, length in zip(row["ids"], np.diff(row["cu_seqlens"]).tolist(), strict=True):
            expected[datasets[name]] = expected.get(datasets[name], 0) + length
        assert dict(zip(entry["datasets"], entry["dataset_tokens"], strict=True)) == expected
    assert table.num_rows == sum(map(len, shards))


def test_a_read_index_holds_the_mix_of_each_sequence(tokens: Path, tmp_path: Path) -> None:
    pack(tokens, tmp_path / "P")
    index = read_index(tmp_path / "P")
    assert index.datasets and set(index.datasets) == {"maths", "tools", ""}
    per_sequence = index.mix.of(np.arange(len(index.tokens))[:, np.newaxis]).sum(axis=1)
    assert per_sequence.tolist() == index.tokens.tolist()


def test_labels_positions_and_lengths_are_those_of_each_document_alone(
    documents: list[Document], tokens: Path, tmp_path: Path
) -> None:
    pack(tokens, tmp_path / "P", replace(OPTIONS, labels=True))
    by_id = {document.id: document for document in documents}
    for row in rows(tmp_path / "P"):
        members = [by_id[name] for name in row["ids"]]
        assert row["seq_lengths"] == [len(each.tokens) for each in members]
        assert row["position_ids"] == [place for each in members for place in range(len(each.tokens))]
        assert row["labels"] == [
            token if trained else -100
            for each in members
            for token, trained in zip(each.tokens, each.mask, strict=True)
        ]


def test_workers_do_not_change_a_byte(tokens: Path, tmp_path: Path) -> None:
    pack(tokens, tmp_path / "one", rows_per_shard=40)
    pack(tokens, tmp_path / "two", rows_per_shard=40, workers=2)
    assert len(file_bytes(tmp_path / "one")) > 3
    assert file_bytes(tmp_path / "one") == file_bytes(tmp_path / "two")


def test_neither_order_nor_sharding_of_the_input_changes_a_byte(documents: list[Document], tmp_path: Path) -> None:
    one = write_token_folder(tmp_path / "one", documents)
    parts = [
        write_token_folder(tmp_path / "a", documents[:700:-1], shards=2),
        write_token_folder(tmp_path / "b", documents[700::-1]),
    ]
    pack(one, tmp_path / "P")
    pack(one, tmp_path / "Q", inputs=[str(part) for part in parts])
    shards = {name for name in file_bytes(tmp_path / "P") if name.endswith(".arrow")}
    assert all((tmp_path / "P" / name).read_bytes() == (tmp_path / "Q" / name).read_bytes() for name in shards)


def test_the_seed_decides_which_documents_meet(tokens: Path, tmp_path: Path) -> None:
    pack(tokens, tmp_path / "P")
    pack(tokens, tmp_path / "Q", replace(OPTIONS, seed=1))
    assert [row["ids"] for row in rows(tmp_path / "P")] != [row["ids"] for row in rows(tmp_path / "Q")]


def test_without_shuffle_documents_are_packed_as_they_come(tmp_path: Path) -> None:
    documents = [
        Document(f"{index}", [index] * n, [False] + [True] * (n - 1)) for index, n in enumerate(range(400, 394, -1))
    ]
    write_token_folder(tmp_path / "T", documents, shards=2)
    pack(tmp_path / "T", tmp_path / "P", replace(OPTIONS, shuffle=False))
    assert [row["ids"] for row in rows(tmp_path / "P")] == [["0", "1"], ["2", "3"], ["4", "5"]]


def test_the_summary_reports_what_the_packing_came_to(tokens: Path, documents: list[Document], tmp_path: Path) -> None:
    summary = pack(tokens, tmp_path / "P")
    found = rows(tmp_path / "P")
    total = sum(len(document.tokens) for document in documents)
    assert (summary.counters.records_in, summary.counters.records_out) == (2000, 2000)
    assert summary.tokens == total
    assert summary.facts["sequences"] == len(found)
    assert summary.facts["padding"] == pytest.approx(1 - total / (len(found) * CAPACITY))
    costs = [row["cost"] for row in found]
    assert (summary.facts["cost_min"], summary.facts["cost_max"]) == (min(costs), max(costs))
    assert decode((tmp_path / "P" / "manifest.json").read_bytes())["statistics"]["sequences"] == len(found)


LONG = [
    Document("fits", [1] * 10, [False] + [True] * 9),
    Document("cut between turns", [2] * 14, [False] + [True] * 9 + [False] * 2 + [True] * 2),
    Document("cut within a turn", [3] * 14, [False] * 2 + [True] * 3 + [False] * 2 + [True] * 7),
    Document("no whole turn", [4] * 14, [False] * 2 + [True] * 12),
    Document("cut after a header", [5] * 14, [False] + [True] * 4 + [False] * 5 + [True] * 4),
]


@pytest.fixture
def long(tmp_path: Path) -> Path:
    return write_token_folder(tmp_path / "long", LONG)


def test_an_over_long_document_is_an_error_that_names_it(long: Path, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"part-00000\.arrow: document 'cut between turns' has 14 tokens, more than"):
        pack(long, tmp_path / "P", PackOptions(capacity=10))
    assert not (tmp_path / "P" / "manifest.json").exists()


def test_dropped_documents_are_counted_and_listed(long: Path, tmp_path: Path) -> None:
    summary = pack(long, tmp_path / "P", PackOptions(capacity=10, overlong="drop"))
    assert summary.counters.records_in == 5
    assert summary.counters.records_out == 1
    assert summary.counters.rejected == {"overlong": 4}
    rejected = [decode(line) for line in (tmp_path / "P" / "quarantine" / "part-00000.jsonl").read_bytes().splitlines()]
    assert [entry["record"]["id"] for entry in rejected] == [document.id for document in LONG[1:]]


def test_quarantine_rejects_over_long_documents(long: Path, tmp_path: Path) -> None:
    summary = pack(long, tmp_path / "P", PackOptions(capacity=10), quarantine=True)
    assert summary.counters.rejected == {"overlong": 4}


def test_a_truncated_document_never_ends_in_a_trained_half_turn(long: Path, tmp_path: Path) -> None:
    summary = pack(long, tmp_path / "P", PackOptions(capacity=10, overlong="truncate"))
    masks = {name: mask for row in rows(tmp_path / "P") for name, (_, mask) in unpacked(row).items()}
    assert masks == {
        "fits": [False] + [True] * 9,
        "cut between turns": [False] + [True] * 9,
        "cut within a turn": [False] * 2 + [True] * 3,
        "cut after a header": [False] + [True] * 4,
    }
    assert summary.counters.notes == {"truncated": 3}
    assert summary.counters.rejected == {"no_trained_tokens": 1}
    assert all(row["loss_tokens"] == sum(row["loss_mask"]) for row in rows(tmp_path / "P"))


@pytest.mark.parametrize(
    ("mask", "length"),
    [("01100", 3), ("01110", 0), ("11111", 0), ("01011", 2), ("00010", 0), ("01000", 2), ("10100", 3)],
)
def test_a_cut_after_three_tokens_keeps_the_runs_that_end_by_then(mask: str, length: int) -> None:
    assert length_when_cut(np.array(list(map(int, mask)), bool), 3) == length


def test_a_document_without_tokens_is_rejected(tmp_path: Path) -> None:
    write_token_folder(tmp_path / "T", [Document("empty", [], []), Document("a", [1, 2], [False, True])])
    summary = pack(tmp_path / "T", tmp_path / "P")
    assert summary.counters.rejected == {"empty": 1}
    assert [row["ids"] for row in rows(tmp_path / "P")] == [["a"]]


def test_when_nothing_is_left_the_run_says_why(tmp_path: Path) -> None:
    write_token_folder(tmp_path / "T", [Document("a", [1] * 20, [False] * 20)])
    with pytest.raises(ToolkitError, match="no document is left to pack") as caught:
        pack(tmp_path / "T", tmp_path / "P", PackOptions(capacity=10, overlong="drop"))
    assert caught.value.hint == "1 overlong"


def test_a_repeated_id_is_refused_when_shuffling_and_kept_in_input_order(tmp_path: Path) -> None:
    write_token_folder(tmp_path / "T", [Document("twice", [1, 2], [False, True])] * 2)
    with pytest.raises(ToolkitError, match="document id 'twice' occurs more than once"):
        pack(tmp_path / "T", tmp_path / "P")
    pack(tmp_path / "T", tmp_path / "Q", replace(OPTIONS, shuffle=False))
    assert [row["ids"] for row in rows(tmp_path / "Q")] == [["twice", "twice"]]


def test_equal_keys_are_ordered_by_id() -> None:
    documents = np.zeros(3, DOCUMENT)
    documents["key"] = [7, 3, 7]
    documents["length"] = [0, 1, 2]
    names = ["b", "c", "a"]
    assert shuffled(documents, lambda document: names[document["length"]]).tolist() == [1, 2, 0]


def test_array_jobs_write_together_what_one_job_writes(tokens: Path, tmp_path: Path) -> None:
    pack(tokens, tmp_path / "P", rows_per_shard=40)
    first = pack(tokens, tmp_path / "Q", rows_per_shard=40, part=(1, 2))
    assert not first.complete
    assert not (tmp_path / "Q" / "manifest.json").exists()
    assert pack(tokens, tmp_path / "Q", rows_per_shard=40, part=(0, 2)).complete
    assert file_bytes(tmp_path / "P") == file_bytes(tmp_path / "Q")


def test_a_finished_run_is_not_repeated_and_other_options_are_refused(tokens: Path, tmp_path: Path) -> None:
    pack(tokens, tmp_path / "P")
    assert pack(tokens, tmp_path / "P", resume=True).finished_before
    with pytest.raises(UsageError, match="was begun from other inputs or options"):
        pack(tokens, tmp_path / "P", replace(OPTIONS, capacity=2000), resume=True)


def test_a_dry_run_reports_and_writes_nothing(tokens: Path, tmp_path: Path) -> None:
    summary = pack(tokens, tmp_path / "P", dry_run=True)
    assert summary.facts["documents"] == 2000
    assert not (tmp_path / "P").exists()


@pytest.mark.parametrize(
    ("options", "message"), [({"method": "ffd"}, "`method` ffd: unknown"), ({"overlong": "cut"}, "`overlong` cut")]
)
def test_unknown_choices_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PackOptions(**options)


def test_output_must_be_another_folder(tokens: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is input and output"):
        pack(tokens, tokens, force=True)
    assert ShardFolder(tokens).rows == 2000
    with pytest.raises(UsageError, match="packed shards are a folder"):
        pack(tokens, Path("-"))


def test_only_finished_token_shards_are_packed(tokens: Path, tmp_path: Path) -> None:
    pack(tokens, tmp_path / "P")
    with pytest.raises(ToolkitError, match="holds packed shards, not tokens shards"):
        pack(tmp_path / "P", tmp_path / "Q")
    with pytest.raises(UsageError, match="not a folder"):
        pack(tmp_path / "absent", tmp_path / "Q")


def test_folders_rendered_with_different_tokenizers_do_not_mix(tmp_path: Path) -> None:
    one = write_token_folder(tmp_path / "a", random_documents(5), tokenizer="x", chat_template="t")
    two = write_token_folder(tmp_path / "b", random_documents(5, seed=1), tokenizer="y", chat_template="t")
    with pytest.raises(ToolkitError, match="rendered with different tokenizers"):
        pack(one, tmp_path / "P", inputs=[str(one), str(two)])
    pack(one, tmp_path / "Q")
    manifest = ShardFolder(tmp_path / "Q").manifest
    assert (manifest["tokenizer"], manifest["chat_template"]) == ("x", "t")


def test_compressed_shards_are_refused(tmp_path: Path) -> None:
    folder = write_token_folder(tmp_path / "T", random_documents(50))
    path = ShardFolder(folder).paths[0]
    table = pa.ipc.open_file(path).read_all()
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as sink:
        sink.write(table)
    _accept(folder, path)
    with pytest.raises(ToolkitError, match=r"part-00000\.arrow: compressed"):
        pack(folder, tmp_path / "P")


def test_a_length_that_is_not_that_of_the_tokens_is_refused(tmp_path: Path) -> None:
    folder = write_token_folder(tmp_path / "T", [Document("odd", [1, 2, 3], [False, True, True])])
    path = ShardFolder(folder).paths[0]
    table = pa.ipc.open_file(path).read_all()
    table = table.set_column(5, table.schema.field("length"), pa.array([2], pa.int32()))
    with pa.ipc.new_file(path, table.schema) as sink:
        sink.write(table)
    _accept(folder, path)
    with pytest.raises(ToolkitError, match="record 'odd' has 3 tokens, but length says 2"):
        pack(folder, tmp_path / "P")


def _accept(folder: Path, path: Path) -> None:
    """Let the manifest know a folder's only shard as it is now."""
    manifest = folder / "manifest.json"
    content = decode(manifest.read_bytes())
    content["shards"][0] |= {"bytes": path.stat().st_size, "blake2b": checksum(path)}
    manifest.write_bytes(encode(content))
