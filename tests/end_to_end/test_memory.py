"""Memory is bounded by the batch: ten times the input takes less than a quarter more, for every stage."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.json_text import encode
from tests.conftest import cli_command

SMALL, LARGE = 1_500, 15_000
WORDS = ("Mehl", "Wasser", "Salz", "Hefe", "Ofen", "Teig", "Brot", "kneten", "backen", "ruhen", "wiegen", "Gramm")


def conversation(number: int) -> dict[str, Any]:
    choose = random.Random(number)
    text = " ".join(choose.choices(WORDS, k=choose.randint(100, 400)))
    call = {"function": {"name": "wiege", "arguments": {"gramm": choose.randint(1, 999)}}}
    return {
        "id": f"r{number}",
        "dataset": f"d{number % 3}",
        "messages": [
            {"role": "user", "content": text},
            {"role": "assistant", "reasoning": text[::2], "content": None, "tool_calls": [call]},
            {"role": "tool", "content": "Error: Waage aus" if number % 2 else "ok"},
            {"role": "assistant", "content": text[::-1]},
        ],
        "tools": [{"name": "wiege", "parameters": {"type": "object", "properties": {"gramm": {"type": "integer"}}}}],
    }


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory, sample_data: Path) -> dict[int, dict[str, Path]]:
    """Raw records and token shards of both sizes."""
    found = {}
    for count in (SMALL, LARGE):
        folder = tmp_path_factory.mktemp(f"records{count}")
        raw = folder / "raw.jsonl"
        with raw.open("wb") as file:
            file.writelines(encode(conversation(number)) + b"\n" for number in range(count))
        render = ["render", raw, "-o", folder / "tokens", "--tokenizer", sample_data / "tokenizer", "--quiet"]
        subprocess.run(cli_command(*render), check=True)
        found[count] = {"raw": raw, "tokens": folder / "tokens"}
    return found


def peak_mebibytes(arguments: list[str | Path]) -> float:
    process = subprocess.Popen(cli_command(*arguments))
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    return usage.ru_maxrss / 1024


@pytest.mark.parametrize("to_pipe", [False, True])
@pytest.mark.parametrize("stage", [["convert"], ["mask"], ["effort", "label"], ["render"], ["pack"]])
def test_peak_memory_hardly_grows_with_ten_times_the_input(
    stage: list[str], to_pipe: bool, inputs: dict[int, dict[str, Path]], sample_data: Path, tmp_path: Path
) -> None:
    if to_pipe and stage == ["pack"]:
        pytest.skip("pack writes shards only")
    peaks = []
    for count in (SMALL, LARGE):
        source = inputs[count]["tokens" if stage == ["pack"] else "raw"]
        target = "/dev/null" if to_pipe else tmp_path / str(count)
        output: list[str | Path] = ["-o", tmp_path / f"{count}.jsonl"] if to_pipe else ["-o", target]
        options: list[str | Path] = ["--workers", "1", "--quiet"]
        if stage[0] in ("effort", "render"):
            options += ["--tokenizer", sample_data / "tokenizer"]
        peaks.append(peak_mebibytes([*stage, source, *output, *options]))
    print(f"{' '.join(stage)}: {peaks[0]:.0f} MiB, {peaks[1]:.0f} MiB at ten times the input")
    assert peaks[1] < 1.25 * peaks[0]
