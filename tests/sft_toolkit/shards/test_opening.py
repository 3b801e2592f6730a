"""Inputs from anywhere: pipes, links, other compressions and encodings, and what is no data."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from sft_toolkit.errors import RecordError, ToolkitError, UsageError
from sft_toolkit.shards.sources import Source, copy_streams

LINES = "".join(f'{{"id": "ä{number}"}}\n' for number in range(5))
IDS = [f"ä{number}" for number in range(5)]


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as file:
        file.write(data)
    return bytes(sink.getvalue())


def ids(name: str | Path, spool: Path, rows: int = 2) -> list[str]:
    spool.mkdir(exist_ok=True)
    found = []
    for block in Source([str(name)]).blocks(rows, spool):
        for row in block.read():
            if row.error is not None:
                raise row.error
            found.append(row.record["id"])
        block.discard()
    assert not list(spool.iterdir())
    return found


WRAPPED: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "gzip of two members": lambda data: gzip.compress(data[:20]) + gzip.compress(data[20:]),
    "zstd": zstd,
    "bz2": bz2.compress,
    "bz2 of two streams": lambda data: bz2.compress(data[:20]) + bz2.compress(data[20:]),
    "xz": lzma.compress,
    "utf-16": lambda data: data.decode().encode("utf-16"),
    "utf-16 without a mark": lambda data: data.decode().encode("utf-16-le"),
    "utf-16 of the other order": lambda data: b"\xfe\xff" + data.decode().encode("utf-16-be"),
    "utf-32": lambda data: data.decode().encode("utf-32"),
    "utf-8 with a mark": lambda data: b"\xef\xbb\xbf" + data,
}


@pytest.mark.parametrize("kind", WRAPPED)
@pytest.mark.parametrize(
    "name", ["a.jsonl", "A.JSONL", "a.Json", "a.jsonl.gz", "a.jsonl.bz2", "a.JSONL.XZ", "a.ndjson.zst"]
)
def test_lines_are_read_whatever_wraps_them_and_whatever_the_name_says(kind: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(WRAPPED[kind](LINES.encode()))
    assert ids(path, tmp_path / "spool") == IDS


@pytest.mark.parametrize("kind", WRAPPED)
def test_a_pipe_is_read_as_a_file_is(kind: str, tmp_path: Path) -> None:
    pipe = tmp_path / "p.jsonl"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(WRAPPED[kind](LINES.encode()),))
    writer.start()
    assert ids(pipe, tmp_path / "spool") == IDS
    writer.join()


def test_a_descriptor_of_the_shell_is_a_stream_even_where_it_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(LINES)
    with path.open() as file:
        assert ids(f"/dev/fd/{file.fileno()}", tmp_path / "spool") == IDS


def test_two_passes_over_a_pipe_read_a_copy(tmp_path: Path) -> None:
    pipe = tmp_path / "p"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(LINES,))
    writer.start()
    source = Source([str(pipe)])
    assert not source.repeatable
    copies = copy_streams(source.streams, tmp_path)
    writer.join()
    for _ in range(2):
        blocks = list(Source([str(pipe)], copies).blocks(3, tmp_path))
        assert [(block.rows, next(block.read()).origin) for block in blocks] == [(3, f"{pipe}:1"), (2, f"{pipe}:4")]


@pytest.mark.parametrize("again", ["-", "/dev/stdin", "/dev/fd/0"])
def test_standard_input_given_twice_is_refused(again: str) -> None:
    with pytest.raises(UsageError, match=r"^-: given twice"):
        Source(["-", again])


@pytest.mark.parametrize("target", ["nowhere.jsonl", "link.jsonl"])
def test_a_link_that_leads_nowhere_is_named(target: str, tmp_path: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(target)
    for given in (link, tmp_path, tmp_path / "*.jsonl"):
        with pytest.raises(UsageError, match=rf"{link}: is a link to {target}, where nothing is"):
            Source([str(given)])


def test_a_link_is_read_as_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(LINES)
    (tmp_path / "link.jsonl").symlink_to("a.jsonl")
    assert ids(tmp_path / "link.jsonl", tmp_path / "spool") == IDS


@pytest.mark.parametrize(
    ("head", "what"), [(b"PK\x03\x04", "a zip archive"), (b"PAR1", "a Parquet file"), (b"ARROW1\0\0", "an Arrow file")]
)
def test_what_holds_no_lines_is_called_what_it_is(head: bytes, what: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(head + bytes(50))
    with pytest.raises(ToolkitError, match=rf"a.jsonl: is {what}, not lines of JSON"):
        ids(path, tmp_path / "spool")


@pytest.mark.parametrize(
    ("suffix", "pack"), [("gz", gzip.compress), ("zst", zstd), ("bz2", bz2.compress), ("xz", lzma.compress)]
)
def test_data_that_ends_early_is_an_error(suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / f"a.jsonl.{suffix}"
    path.write_bytes(pack(os.urandom(9000).hex().encode())[:-3000])
    with pytest.raises(ToolkitError, match="damaged or ends early after line 0"):
        ids(path, tmp_path / "spool")


@pytest.mark.parametrize(
    ("name", "text", "detail", "hint"),
    [
        ("a.jsonl", '{"id": 1}\r{"id": 2}\r', "the lines end in carriage returns alone", "tr '\\r' '\\n'"),
        ("a.jsonl", '{"id": 1', "the last line is cut off", "was the writer stopped?"),
        ("config.json", '{\n "a": 1\n}\n', "the line is not JSON", "where it is no data, name the others, as in '"),
        ("a.json", '[\n {"id": 1}\n]\n', "the line is not a JSON object", "jq -c '.[]'"),
    ],
)  # fmt: skip
def test_lines_that_are_no_records_say_what_they_are(
    name: str, text: str, detail: str, hint: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text, newline="")
    with pytest.raises(RecordError) as caught:
        ids(tmp_path / name, tmp_path / "spool")
    assert caught.value.detail.startswith(detail)
    assert hint in caught.value.hint


def test_a_folder_whose_data_lie_deeper_says_where(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.jsonl").write_text(LINES)
    with pytest.raises(UsageError, match="holds no JSONL") as caught:
        Source([str(tmp_path)])
    assert caught.value.hint == f"they are in {tmp_path / 'data'}: name that folder"
