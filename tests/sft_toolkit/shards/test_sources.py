"""Inputs of every kind give the same rows, in blocks that depend on the rows alone."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.json_text import encode
from sft_toolkit.shards.segments import MAX_LINE_BYTES
from sft_toolkit.shards.sources import Source

ROWS = [{"id": f"r{number}", "messages": [{"role": "user", "content": "ä" * number}]} for number in range(25)]
LINES = [json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS]


def write_lines(path: Path, lines: list[str]) -> str:
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


def read_blocks(inputs: list[str], rows_per_block: int, spool: Path) -> list[list[Any]]:
    blocks = Source(inputs).blocks(rows_per_block, spool)
    return [[opened_messages(row.record) for row in block.read()] for block in blocks]


def opened_messages(record: Any) -> Any:
    """Messages are JSON text in some tables; whoever reads records opens it."""
    given = record["messages"] if isinstance(record, dict) and "messages" in record else None
    return {**record, "messages": json.loads(given)} if isinstance(given, str) else record


def expected_blocks(rows_per_block: int) -> list[list[Any]]:
    return [ROWS[start : start + rows_per_block] for start in range(0, len(ROWS), rows_per_block)]


def as_table() -> pa.Table:
    messages = [json.dumps(row["messages"], ensure_ascii=False) for row in ROWS]
    return pa.table({"id": [row["id"] for row in ROWS], "messages": messages})


def write_jsonl(folder: Path) -> str:
    return write_lines(folder / "x.jsonl", LINES)


def write_unterminated_jsonl(folder: Path) -> str:
    return write_lines(folder / "x.jsonl", [*LINES[:-1], LINES[-1].rstrip("\n")])


def write_gzip(folder: Path) -> str:
    path = folder / "x.jsonl.gz"
    path.write_bytes(gzip.compress("".join(LINES).encode()))
    return str(path)


def write_zstd(folder: Path) -> str:
    path = folder / "x.jsonl.zst"
    halves = ["".join(LINES[:9]), "".join(LINES[9:])]
    path.write_bytes(b"".join(pa.compress(half.encode(), codec="zstd", asbytes=True) for half in halves))
    return str(path)


def write_parquet(folder: Path) -> str:
    pq.write_table(as_table(), folder / "x.parquet", row_group_size=4)
    return str(folder / "x.parquet")


def write_struct_parquet(folder: Path) -> str:
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "x.parquet", row_group_size=7)
    return str(folder / "x.parquet")


def write_arrow_file(folder: Path) -> str:
    with pa.ipc.new_file(str(folder / "x.arrow"), as_table().schema) as sink:
        sink.write_table(as_table(), max_chunksize=6)
    return str(folder / "x.arrow")


def write_arrow_stream(folder: Path) -> str:
    with pa.ipc.new_stream(str(folder / "x.arrow"), as_table().schema) as sink:
        sink.write_table(as_table(), max_chunksize=6)
    return str(folder / "x.arrow")


def write_saved_to_disk(folder: Path) -> str:
    datasets.Dataset.from_list(ROWS).save_to_disk(str(folder / "saved"), num_shards=2)
    return str(folder / "saved")


def write_hub_folder(folder: Path) -> str:
    write_lines(folder / "train.jsonl", LINES)
    return f"hf:{folder}:train"


def write_folder_of_files(folder: Path) -> str:
    write_lines(folder / "a.jsonl", LINES[:11])
    write_lines(folder / "b.jsonl", LINES[11:])
    return str(folder)


def write_glob(folder: Path) -> str:
    return write_folder_of_files(folder) + "/*.jsonl"


KINDS = [
    write_jsonl,
    write_unterminated_jsonl,
    write_gzip,
    write_zstd,
    write_parquet,
    write_struct_parquet,
    write_arrow_file,
    write_arrow_stream,
    write_saved_to_disk,
    write_hub_folder,
    write_folder_of_files,
    write_glob,
]


@pytest.mark.parametrize("rows_per_block", [1, 10, 25, 100])
@pytest.mark.parametrize("write", KINDS)
def test_every_kind_of_input_gives_the_same_blocks(write: Any, rows_per_block: int, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    blocks = read_blocks([write(tmp_path / "in")], rows_per_block, tmp_path)
    assert blocks == expected_blocks(rows_per_block)


@given(cuts=st.lists(st.integers(0, 25), max_size=4), rows_per_block=st.integers(1, 30), blank=st.booleans())
def test_blocks_do_not_hang_on_how_rows_are_split_into_files(
    cuts: list[int], rows_per_block: int, blank: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("split")
    edges = [0, *sorted(cuts), len(LINES)]
    files = [
        write_lines(folder / f"{number}.jsonl", LINES[start:end])
        for number, (start, end) in enumerate(itertools.pairwise(edges))
    ]
    assert read_blocks(files, rows_per_block, folder) == expected_blocks(rows_per_block)


def test_a_row_reports_its_file_and_line_also_after_blank_lines_and_in_later_blocks(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", ["\n", LINES[0], "  \n", LINES[1], "\r\n\n", LINES[2]])
    blocks = [[row.origin for row in block.read()] for block in Source([path]).blocks(3, tmp_path)]
    assert blocks == [[f"{path}:2", f"{path}:4"], [f"{path}:7"]]


def test_empty_lines_are_no_rows_however_they_come_and_cost_next_to_nothing(tmp_path: Path) -> None:
    text = "".join(line + "\n" * (count * 700) + "\r\n" * (count % 3) for count, line in enumerate(LINES)).encode()
    (tmp_path / "x.jsonl").write_bytes(text)
    (tmp_path / "y.jsonl.gz").write_bytes(gzip.compress(text))
    for name in ("x.jsonl", "y.jsonl.gz"):
        spool = tmp_path / f"spool of {name}"
        spool.mkdir()
        found = [list(block.read()) for block in Source([str(tmp_path / name)]).blocks(10, spool)]
        assert [[row.record for row in rows] for rows in found] == expected_blocks(10)
        numbers = [line for line, row in enumerate(text.split(b"\n"), 1) if row.strip()]
        assert [row.origin.rpartition(":")[2] for rows in found for row in rows] == [str(number) for number in numbers]
        assert len(list(spool.iterdir())) == (3 if name.endswith(".gz") else 0)


def test_fifty_million_empty_lines_are_one_file_and_few_looks(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    empty = gzip.compress(b"\n" * 10_000_000)
    path.write_bytes(empty * 3 + gzip.compress(b'{"a": 1}\n') + empty * 2)
    spool = tmp_path / "spool"
    spool.mkdir()
    blocks = list(Source([str(path)]).blocks(512, spool))
    assert [(row.origin, row.record) for block in blocks for row in block.read()] == [(f"{path}:30000001", {"a": 1})]
    assert len(list(spool.iterdir())) == 1


def test_a_compressed_row_reports_the_line_of_its_own_file(tmp_path: Path) -> None:
    path = write_gzip(tmp_path)
    origins = [row.origin for block in Source([path]).blocks(10, tmp_path) for row in block.read()]
    assert origins == [f"{path}:{number}" for number in range(1, 26)]


def test_temporary_copies_go_when_a_block_is_discarded(tmp_path: Path) -> None:
    path, spool = write_gzip(tmp_path), tmp_path / "spool"
    spool.mkdir()
    for block in Source([path]).blocks(10, spool):
        block.discard()
    assert list(spool.iterdir()) == []
    assert Path(path).exists()


@pytest.mark.parametrize(
    ("content", "reason", "says"),
    [
        (b'{"a": 1}\n{"a"\n{"a": 2}\n', "not_json", "one JSON object a line"),
        (b'{"a": 1}\n{"a": "\xff"}\n{"a": 2}\n', "invalid_utf8", "iconv"),
        (b'{"a": 1}\n{"a": NaN}\n{"a": 2}\n', "not_json", "write null"),
        (b'{"a": 1}\n{"a": "x', "torn_line", "was the writer stopped"),
        (b'{"a": 1}\n{"a": "\\ud83d"}\n{"a": 2}\n', "not_json", "ufffd"),
        (b'{"a": 1}\n' + b"[" * 100_000 + b'\n{"a": 2}\n', "not_json", "one JSON array"),
        (b'{"a": 1}\n[{"a":\n{"a": 2}\n', "not_json", "one JSON array"),
    ],
)
def test_a_bad_line_is_a_fault_of_that_row_alone(content: bytes, reason: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    rows = [row for block in Source([str(path)]).blocks(10, tmp_path) for row in block.read()]
    assert rows[0].record == {"a": 1}
    assert rows[1].error is not None and rows[1].error.reason == reason
    assert says in rows[1].error.hint
    assert rows[1].origin == f"{path}:2"
    assert [row.record for row in rows[2:]] == ([{"a": 2}] if content.endswith(b"\n") else [])


def test_a_line_past_the_limit_is_a_fault_of_that_row_and_is_never_held_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with path.open("wb") as file:
        file.write(b'{"a": 1}\n{"a": "')
        file.seek(3 * MAX_LINE_BYTES, 1)
        file.write(b'"}\n{"a": 2}\n')
    rows = [row for block in Source([str(path)]).blocks(10, tmp_path) for row in block.read()]
    assert [row.record for row in (rows[0], rows[2])] == [{"a": 1}, {"a": 2}]
    assert rows[1].error is not None and rows[1].error.reason == "line_too_long"
    assert "192 MiB, more than 64" in rows[1].error.detail
    assert len(rows[1].record) <= 1000


def test_a_byte_order_mark_is_no_part_of_the_first_record(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\n')
    assert read_blocks([str(path)], 10, tmp_path) == [[{"a": 1}]]


@pytest.mark.parametrize("keep", [0.5, 0.99])
@pytest.mark.parametrize("write", [write_gzip, write_zstd])
def test_compressed_data_that_ends_early_is_an_error_with_the_line(write: Any, keep: float, tmp_path: Path) -> None:
    path = Path(write(tmp_path))
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    with pytest.raises(ToolkitError, match="damaged or ends early after line"):
        read_blocks([str(path)], 10, tmp_path)


@pytest.mark.parametrize("write", [write_parquet, write_arrow_file, write_arrow_stream])
def test_a_cut_table_is_an_error_that_names_the_file(write: Any, tmp_path: Path) -> None:
    path = Path(write(tmp_path))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ToolkitError, match=path.name):
        read_blocks([str(path)], 10, tmp_path)


def test_a_damaged_table_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = Path(write_parquet(tmp_path))
    content = bytearray(path.read_bytes())
    content[4:40] = b"x" * 36
    path.write_bytes(content)
    with pytest.raises(ToolkitError, match=r"x\.parquet: damaged"):
        read_blocks([str(path)], 10, tmp_path)


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["id", "id"])
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(ToolkitError, match="two columns are called id"):
        read_blocks([str(tmp_path / "x.parquet")], 10, tmp_path)


@pytest.mark.parametrize(
    "column", [pa.array([2**50], pa.timestamp("s")), pa.array([b"\xff"]).view(pa.string())], ids=["year", "utf-8"]
)
def test_a_value_that_cannot_be_read_is_an_error_that_names_the_file(column: pa.Array, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": column}), tmp_path / "x.parquet")
    with pytest.raises(ToolkitError, match=r"x\.parquet: holds a value that cannot be read"):
        read_blocks([str(tmp_path / "x.parquet")], 10, tmp_path)


def test_times_of_a_table_keep_their_nanoseconds_when_they_are_written(tmp_path: Path) -> None:
    pq.write_table(pa.table({"at": pa.array([1_000_000_001], pa.timestamp("ns"))}), tmp_path / "x.parquet")
    [[row]] = read_blocks([str(tmp_path / "x.parquet")], 10, tmp_path)
    assert encode(row) == b'{"at":"1970-01-01T00:00:01.000000001"}'


@pytest.mark.parametrize("name", ["missing.jsonl", "missing/*.jsonl"])
def test_a_missing_input_is_named(name: str) -> None:
    with pytest.raises(UsageError, match=r"missing.*no such file"):
        Source([name])


def test_an_unknown_kind_of_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n")
    with pytest.raises(UsageError, match="unknown kind"):
        Source([str(tmp_path / "x.csv")])


def test_a_folder_of_several_splits_asks_which(tmp_path: Path) -> None:
    rows = datasets.Dataset.from_list(ROWS)
    datasets.DatasetDict({"train": rows, "test": rows}).save_to_disk(str(tmp_path / "d"))
    with pytest.raises(UsageError) as caught:
        Source([str(tmp_path / "d")])
    assert "train, test" in caught.value.hint


@pytest.mark.parametrize("content", ['{"epoch": 3}', "[1]", "no JSON", '{"_data_files": 5}'])
def test_a_state_that_is_not_of_datasets_is_a_file_like_any_other(content: str, tmp_path: Path) -> None:
    write_jsonl(tmp_path)
    (tmp_path / "state.json").write_text(content)
    assert Source([str(tmp_path)]).inputs == [str(tmp_path / "state.json"), str(tmp_path / "x.jsonl")]
