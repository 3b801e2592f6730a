"""The main job as users run it: raw conversations through all stages, the same bytes whatever ran where."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from pathlib import Path

import datasets
import pyarrow as pa
import pytest

from sft_toolkit.shards.shard_folder import ShardFolder
from tests.conftest import RunCli, cli_command

SOURCES = ("bakery_tools.jsonl", "school_maths.jsonl", "handwritten.jsonl")


def shard_bytes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("part-*.arrow"))}


@pytest.fixture(scope="module")
def raw(sample_data: Path) -> list[Path]:
    return [sample_data / name for name in SOURCES]


def run_stages(run_cli: RunCli, raw: list[Path], tokenizer: Path, folder: Path, *options: str) -> list[Path]:
    """Every stage into a folder of its own; returns the folders in order."""
    steps: list[list[str | Path]] = [
        ["convert", *raw],
        ["mask"],
        ["effort", "label", "--tokenizer", tokenizer],
        ["render", "--tokenizer", tokenizer],
        ["pack", "--capacity", "16384"],
    ]
    folders: list[Path] = []
    for number, step in enumerate(steps):
        source = [folders[-1]] if folders else []
        folders.append(folder / str(number))
        result = run_cli(*step, *source, "-o", folders[-1], *options)
        assert result.returncode == 0, result.stderr.decode()
    return folders


def test_the_shell_pipe_of_the_readme_ends_in_shards_that_others_open(sample_data: Path, tmp_path: Path) -> None:
    tokenizer = sample_data / "tokenizer"
    kolibri = cli_command()[0]
    script = f"""set -euo pipefail
      {kolibri} mask < {sample_data / "bakery_tools.jsonl"} \
        | {kolibri} effort label - --tokenizer {tokenizer} \
        | {kolibri} render - --tokenizer {tokenizer} -o {tmp_path}/T \
        && {kolibri} pack {tmp_path}/T -o {tmp_path}/P"""
    result = subprocess.run(["bash", "-c", script], capture_output=True, timeout=200)
    assert result.returncode == 0, result.stderr.decode()
    assert result.stdout == b""
    packed = tmp_path / "P"
    opened = datasets.load_dataset(
        "arrow", data_files=f"{packed}/*.arrow", split="train", cache_dir=str(tmp_path / "cache")
    )
    with pa.memory_map(str(packed / "part-00000.arrow")) as file:
        rows = pa.ipc.open_file(file).read_all().to_pylist()
    assert opened.to_list() == rows
    assert sum(row["documents"] for row in rows) == json.loads((packed / "manifest.json").read_text())["counters"]["in"]
    for row in rows:
        lengths = [end - start for start, end in zip(row["cu_seqlens"], row["cu_seqlens"][1:], strict=False)]
        assert len(row["input_ids"]) == len(row["loss_mask"]) == row["tokens"] == row["cu_seqlens"][-1] <= 262_144
        assert row["loss_tokens"] == sum(row["loss_mask"]) > 0
        assert row["cost"] == sum(length**2 for length in lengths)
        assert len(row["ids"]) == len(lengths) == row["documents"]
        assert not any(row["loss_mask"][start] for start in row["cu_seqlens"][:-1])


def test_workers_change_no_byte_of_any_stage(
    run_cli: RunCli, raw: list[Path], sample_data: Path, tmp_path: Path
) -> None:
    tokenizer = sample_data / "tokenizer"
    one, two = (
        run_stages(run_cli, raw, tokenizer, tmp_path / workers, "--workers", workers, "--rows-per-shard", "60")
        for workers in ("1", "2")
    )
    assert [len(shard_bytes(folder)) > 1 for folder in one[:4]] == [True] * 4
    assert [shard_bytes(folder) for folder in one] == [shard_bytes(folder) for folder in two]


def test_a_pipe_gives_the_records_that_folders_hold(
    run_cli: RunCli, raw: list[Path], sample_data: Path, tmp_path: Path
) -> None:
    tokenizer = sample_data / "tokenizer"
    folders = run_stages(run_cli, raw, tokenizer, tmp_path, "--rows-per-shard", "100")
    piped = run_cli("convert", *raw).stdout
    piped = run_cli("mask", stdin=piped).stdout
    piped = run_cli("effort", "label", "--tokenizer", tokenizer, stdin=piped).stdout
    from_folder = run_cli("convert", folders[2], "--quiet").stdout
    convert_again = run_cli("convert", stdin=piped).stdout
    assert from_folder == convert_again
    assert run_cli("render", "-", "--tokenizer", tokenizer, "-o", tmp_path / "T", stdin=piped).returncode == 0
    assert token_rows(tmp_path / "T") == token_rows(folders[3])


def token_rows(folder: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for path in ShardFolder(folder, "tokens").paths:
        with pa.memory_map(str(path)) as file:
            rows += pa.ipc.open_file(file).read_all().to_pylist()
    return rows


def test_render_killed_in_the_middle_and_resumed_ends_in_the_same_bytes(
    run_cli: RunCli, raw: list[Path], sample_data: Path, tmp_path: Path
) -> None:
    common = ["render", *raw, "--tokenizer", sample_data / "tokenizer", "--rows-per-shard", "10", "--workers", "2"]
    assert run_cli(*common, "-o", tmp_path / "whole").returncode == 0
    target = tmp_path / "killed"
    running = subprocess.Popen(cli_command(*common, "-o", target), stderr=subprocess.DEVNULL)
    while len(shard_bytes(target)) < 3 and running.poll() is None:
        time.sleep(0.01)
    running.kill()
    running.wait()
    assert not (target / "manifest.json").exists(), "it was over before it could be killed"
    result = run_cli(*common, "-o", target, "--resume")
    assert result.returncode == 0, result.stderr.decode()
    assert shard_bytes(target) == shard_bytes(tmp_path / "whole")
    manifests = [json.loads((folder / "manifest.json").read_text()) for folder in (target, tmp_path / "whole")]
    assert manifests[0]["counters"] == manifests[1]["counters"]
    assert manifests[0]["shards"] == manifests[1]["shards"]


def test_the_bakerys_wrong_amount_is_masked_and_its_correction_is_not(run_cli: RunCli) -> None:
    parameters = {"type": "object", "properties": {"betrag": {"type": "number"}}, "required": ["betrag"]}
    calls = [
        {"id": f"c{number}", "function": {"name": "buche_einnahme", "arguments": arguments}}
        for number, arguments in enumerate(['{"betrag": "16.20"}', '{"betrag": 16.2}'])
    ]
    record = {
        "messages": [
            {"role": "user", "content": "Bitte 16,20 € verbuchen."},
            {"role": "assistant", "content": None, "tool_calls": calls[:1]},
            {"role": "tool", "tool_call_id": "c0", "content": "Error: betrag must be a number"},
            {"role": "assistant", "content": None, "tool_calls": calls[1:]},
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
            {"role": "assistant", "content": "Gebucht."},
        ],
        "tools": [{"name": "buche_einnahme", "parameters": parameters}],
    }
    result = run_cli("mask", stdin=json.dumps(record).encode())
    messages = json.loads(result.stdout)["messages"]
    assert [message.get("weight") for message in messages] == [None, 0, None, None, None, None]
    assert messages[1]["mask_reason"] == "invalid_arguments"
    assert "betrag" in messages[1]["mask_detail"]
