"""The pipeline of `make demo`, and the same as a shell pipe, in real processes on the sample data."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sft_toolkit.shards.shard_folder import ShardFolder
from tests.conftest import ROOT

FILES = ("handwritten.jsonl", "letters.jsonl", "long_reports.jsonl.gz")
RECORDS = 34 + 130 + 42
BIN = Path(sys.executable).parent


@pytest.fixture
def checkout(tmp_path: Path, sample_data: Path) -> Path:
    """What `make demo` needs of the project: three of the sample files, and the tests' own environment as installed."""
    folder = tmp_path / "checkout"
    shutil.copytree(sample_data / "tokenizer", folder / "sample_data" / "tokenizer")
    for name in FILES:
        shutil.copy(sample_data / name, folder / "sample_data" / name)
    shutil.copy(ROOT / "Makefile", folder)
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(BIN)
    for name in ("pyproject.toml", "constraints.txt", ".venv/.demo"):
        (folder / name).touch()
    return folder


def _make(checkout: Path) -> subprocess.CompletedProcess[str]:
    # What an outer make, `make test` say, hands down would change this one's variables and output.
    outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "VENV", "OUT")
    environment = {name: value for name, value in os.environ.items() if name not in outer}
    return subprocess.run(
        ["make", "pipeline"], cwd=checkout, env=environment, capture_output=True, text=True, check=True, timeout=240
    )


def _commands(done: subprocess.CompletedProcess[str]) -> list[tuple[str, str]]:
    """(command, first input) of each kolibri-sft that make ran."""
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(".venv/bin/kolibri-sft")]
    return [(words[1], Path(words[3 if words[1] == "effort" else 2]).name) for words in lines]


def _written(output: Path) -> dict[str, int]:
    """When each manifest was written, by the name of its folder."""
    return {str(path.parent.relative_to(output)): path.stat().st_mtime_ns for path in output.rglob("manifest.json")}


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_make_demo_does_again_only_what_depends_on_a_changed_input(checkout: Path) -> None:
    first = _make(checkout)
    output = checkout / "demo_output"
    before = _written(output)
    assert len(_commands(first)) == 2 * len(FILES) + 4
    assert "window" in first.stdout, "the table of plan is shown"
    tokens = ShardFolder(output / "tokens", "tokens")
    documents = [name for path in tokens.paths for name in _read(path)["id"].to_pylist()]
    assert len({_record_of(name) for name in documents}) == RECORDS
    assert len(set(documents)) == len(documents), "exchanges of other efforts are documents of their own"

    second = _make(checkout)
    assert _commands(second) == []
    assert _written(output) == before

    os.utime(checkout / "sample_data" / "letters.jsonl")
    third = _make(checkout)
    assert _commands(third) == [
        ("convert", "letters.jsonl"),
        ("mask", "letters"),
        ("effort", "handwritten"),
        ("render", "labelled"),
        ("pack", "tokens"),
        ("plan", "packed"),
    ]
    changed = {name for name, when in _written(output).items() if when != before[name]}
    assert changed == {"records/letters", "masked/letters", "labelled", "tokens", "packed"}


def test_a_shell_pipe_gives_packed_shards_that_datasets_and_pyarrow_open(sample_data: Path, tmp_path: Path) -> None:
    import datasets

    tokenizer = sample_data / "tokenizer"
    pipe = (
        f"kolibri-sft mask < {sample_data}/bakery_tools.jsonl | kolibri-sft effort label - --tokenizer {tokenizer} | "
        f"kolibri-sft render - --tokenizer {tokenizer} -o T && kolibri-sft pack T -o P --capacity 16384"
    )
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", pipe],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr

    packed = ShardFolder(tmp_path / "P", "packed")
    table = pa.concat_tables([_read(path) for path in packed.paths])
    opened = datasets.load_dataset("arrow", data_files=f"{tmp_path}/P/*.arrow", cache_dir=str(tmp_path / "cache"))[
        "train"
    ]
    assert opened.num_rows == table.num_rows == packed.rows
    assert opened["input_ids"][0] == table["input_ids"][0].as_py()
    names = [name for row in table["ids"].to_pylist() for name in row]
    assert len({_record_of(name) for name in names}) == 150
    assert len(set(names)) == len(names) == sum(table["documents"].to_pylist())
    for row in table.to_pylist():
        ends = np.array(row["cu_seqlens"])
        assert ends[0] == 0 and ends[-1] == row["tokens"] == len(row["input_ids"]) == len(row["loss_mask"]) <= 16384
        assert len(row["ids"]) == row["documents"] == len(ends) - 1
        assert row["cost"] == int((np.diff(ends) ** 2).sum())
        assert sum(row["loss_mask"]) == row["loss_tokens"]


def _record_of(document: str) -> str:
    """The record of a document, which is called ID#n where it holds only some of the exchanges."""
    return document.partition("#")[0]


def _read(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()
