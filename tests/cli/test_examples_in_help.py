"""Every command's help shows examples, and each of them runs, one after another in one folder."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sft_toolkit.cli.examples import EXAMPLES
from sft_toolkit.cli.main import run
from sft_toolkit.cli.settings import all_commands
from tests.conftest import ROOT
from tests.teacher_fixtures import Running, serve  # noqa: F401

OF_MODELS = ("train", "soup", "mergemix merge", "mergemix score", "mergemix rank")
"""Run in the slow test: they train."""


def head(path: Path, count: int) -> str:
    return "".join(path.read_text().splitlines(keepends=True)[:count])


@pytest.fixture
def run_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run one line in the folder, where the files that examples name are; returns what it printed to stdout."""
    monkeypatch.chdir(tmp_path)
    data = ROOT / "sample_data"
    shutil.copytree(data / "tokenizer", tmp_path / "tokenizer")
    shutil.copy(data / "tiny_qwen3.json", tmp_path / "config.json")
    (tmp_path / "raw.jsonl").write_text(head(data / "bakery_tools.jsonl", 20) + head(data / "school_maths.jsonl", 40))
    (tmp_path / "mixture.toml").write_text("[datasets.school_maths]\nepochs = 1\n[datasets.bakery_tools]\nepochs = 1\n")
    rows = [{"question": f"Wie viel ist {n} mal {n}?", "answer": f"Das ist {n * n}."} for n in range(40)]
    write(tmp_path / "questions.jsonl", rows)
    write(
        tmp_path / "benchmark.jsonl", [{"id": "b1", "question": "Wie weit ist es vom Bahnhof bis zum alten Rathaus?"}]
    )
    levels = ("easy", "medium", "hard")
    prompts = [
        {
            "id": f"p{n}",
            "dataset": "abc"[n // 3 % 3],
            "level": levels[n % 3],
            "messages": [message("user", "+1" * 4 ** (n % 3 + 1) + f" {n}")],
        }
        for n in range(90)
    ]
    write(tmp_path / "prompts.jsonl", prompts)
    attempts = [
        {"id": f"a{n}", "solution": "4", "messages": [message("user", "2+2?"), message("assistant", f"Also {n + 2}.")]}
        for n in range(4)
    ]
    write(tmp_path / "attempts.jsonl", attempts)

    def one(line: str, url: str = "") -> str:
        words = shlex.split(line.replace("http://localhost:8000/v1", url) if url else line)
        monkeypatch.setattr(sys, "argv", words)
        code: object = 0
        try:
            run()
        except SystemExit as end:
            code = end.code
        printed = capsys.readouterr()
        assert not code, f"{line}: {printed.err}"
        return printed.out

    return one


def message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_each_command_has_examples_and_help_shows_them(run_line: Callable[..., str]) -> None:
    assert [" ".join(words) for words, _ in all_commands() if " ".join(words) not in EXAMPLES] == []
    for command, lines in EXAMPLES.items():
        assert all(line.startswith(f"kolibri-sft {command} ") for line in lines)
    shown = run_line("kolibri-sft mask --help")
    assert "Examples:\n  kolibri-sft mask records/ -o masked/\n" in shown


def test_each_example_of_help_runs(
    run_line: Callable[..., str],
    serve: Callable[..., Running],  # noqa: F811
) -> None:
    server = serve()
    order = [command for command in EXAMPLES if command not in OF_MODELS]
    for line in [line for command in order for line in EXAMPLES[command]]:
        run_line(line, server.url)


@pytest.mark.slow
def test_each_example_of_models_runs(run_line: Callable[..., str], tmp_path: Path) -> None:
    before = ("convert", "mask", "effort label", "render", "pack", "train")
    for command in before:
        run_line(EXAMPLES[command][0])
    for name in "ab":
        shutil.copytree(tmp_path / "run" / "model", tmp_path / "runs" / name / "model")
    for command in OF_MODELS[1:]:
        for line in EXAMPLES[command]:
            run_line(line)
