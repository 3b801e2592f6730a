"""`kolibri-sft pack` as a person runs it."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pytest

from tests.conftest import RunCli, cli_command
from tests.token_shards import Document, random_documents, write_token_folder


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_token_folder(tmp_path_factory.mktemp("pack") / "T", random_documents(3000), shards=3)


def shard_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("part-*.arrow")}


def test_the_summary_accounts_for_every_document_and_stdout_stays_empty(
    run_cli: RunCli, tokens: Path, tmp_path: Path
) -> None:
    done = run_cli("pack", tokens, "-o", tmp_path / "P", "--capacity", "1024")
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""
    lines = [" ".join(line.split()) for line in done.stderr.decode().splitlines()]
    assert {"records in 3,000", "records out 3,000", "sequences of 1,024 tokens"} <= set(lines)
    sequences = pa.concat_tables(
        pa.ipc.open_file(path).read_all() for path in sorted((tmp_path / "P").glob("part-*.arrow"))
    )
    assert f"sequences {sequences.num_rows}" in lines
    tokens_in = sum(sequences["tokens"].to_pylist())
    assert f"padding {1 - tokens_in / (1024 * sequences.num_rows):.4%}" in lines


def test_json_is_one_object_on_stderr(run_cli: RunCli, tokens: Path, tmp_path: Path) -> None:
    done = run_cli("pack", tokens, "-o", tmp_path / "P", "--capacity", "1024", "--json")
    summary = json.loads(done.stdout)
    assert summary["in"] == summary["out"] == summary["documents"] == 3000
    assert 0 < summary["padding"] < 0.02


def test_datasets_opens_the_shards(run_cli: RunCli, tokens: Path, tmp_path: Path) -> None:
    from datasets import load_dataset

    assert run_cli("pack", tokens, "-o", tmp_path / "P", "--capacity", "2048", "--labels").returncode == 0
    files = sorted(str(path) for path in (tmp_path / "P").glob("*.arrow"))
    opened = load_dataset("arrow", data_files=files, split="train", cache_dir=str(tmp_path / "cache"))
    first = opened[0]
    assert first["cu_seqlens"][-1] == len(first["input_ids"]) == len(first["labels"]) == first["tokens"]


def test_an_over_long_document_ends_the_run_with_one_line(run_cli: RunCli, tmp_path: Path) -> None:
    folder = write_token_folder(tmp_path / "T", [Document("too long", [1] * 30, [False] + [True] * 29)])
    done = run_cli("pack", folder, "-o", tmp_path / "P", "--capacity", "20")
    assert done.returncode == 1
    line = done.stderr.decode().strip()
    assert "\n" not in line
    assert "document 'too long' has 30 tokens, more than the capacity of 20; choose --overlong drop" in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "-"], "packed shards are a folder; name it with --output"),
        (["-o", "P", "--method", "ffd"], "--method: 'ffd' is not one of 'nkf', 'bfd'; see kolibri-sft pack --help"),
        (
            ["-o", "P", "--overlong", "cut"],
            "--overlong: 'cut' is not one of 'error', 'drop', 'truncate'; see kolibri-sft pack --help",
        ),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    run_cli: RunCli, tokens: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = run_cli("pack", tokens, *arguments, cwd=tmp_path)
    assert (done.returncode, done.stderr.decode().strip()) == (2, f"error: {message}")


@pytest.mark.parametrize("option", ["--capacity", "-k"])
def test_a_number_past_what_shards_can_hold_is_wrong_use(run_cli: RunCli, tokens: Path, option: str) -> None:
    done = run_cli("pack", tokens, "-o", tokens.parent / "P", option, str(2**31))
    assert done.returncode == 2 and b"less than or equal to 2147483647" in done.stderr


def test_a_run_killed_in_the_middle_goes_on_and_ends_in_the_same_bytes(
    run_cli: RunCli, tokens: Path, tmp_path: Path
) -> None:
    common = [tokens, "--capacity", "1024", "--rows-per-shard", "2", "--workers", "1"]
    assert run_cli("pack", *common, "-o", tmp_path / "whole").returncode == 0
    target = tmp_path / "killed"
    running = subprocess.Popen(cli_command("pack", *common, "-o", target), stderr=subprocess.DEVNULL)
    while len(shard_bytes(target)) < 5:
        time.sleep(0.005)
    running.kill()
    running.wait()
    begun = {path.name: path.stat().st_mtime_ns for path in sorted(target.glob("part-*.arrow"))[:4]}
    assert not (target / "manifest.json").exists()
    resumed = run_cli("pack", *common, "-o", target, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert {name: (target / name).stat().st_mtime_ns for name in begun} == begun
    assert shard_bytes(target) == shard_bytes(tmp_path / "whole")
    assert (target / "index.parquet").read_bytes() == (tmp_path / "whole" / "index.parquet").read_bytes()
