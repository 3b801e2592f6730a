"""The command line as a whole: help that is quick, commands that are listed, arrows that point down."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sft_toolkit.cli.registry import COMMANDS
from tests.conftest import ROOT, RunCli, cli_command

HEAVY = {"polars", "pyarrow", "torch", "transformers", "tokenizers", "datasets", "numba", "numpy", "httpx", "fasttext"}


@pytest.mark.parametrize("arguments", [[], *([name] for name in COMMANDS)])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom sft_toolkit.cli.main import run\n"
        f"sys.argv = ['kolibri-sft', *{arguments!r}, '--help']\n"
        "try:\n    run()\nexcept SystemExit as stop:\n    assert not stop.code, stop.code\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.stderr.strip() == "[]"
    assert "Usage" in result.stdout


def test_every_command_is_listed_with_its_line_of_help(run_cli: RunCli) -> None:
    text = " ".join(run_cli("--help").stdout.decode().split())
    assert all(name in text and entry.help in text for name, entry in COMMANDS.items())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_listed_line_of_help_is_the_commands_own(name: str, run_cli: RunCli) -> None:
    text = " ".join(run_cli(name, "--help").stdout.decode().split())
    assert COMMANDS[name].help in text


def test_the_readme_shows_every_command() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [name for name in COMMANDS if f"kolibri-sft {name}" not in readme] == []


def test_the_version_is_printed(run_cli: RunCli) -> None:
    assert run_cli("--version").stdout == b"kolibri-sft 0.1.0\n"


@pytest.mark.parametrize("command", [("effort", "fit"), ("grade", "fit"), ("mergemix", "cluster")])
def test_a_command_that_only_reads_takes_the_options_of_reading_and_none_of_shards(
    command: tuple[str, str], run_cli: RunCli
) -> None:
    text = run_cli(*command, "--help").stdout.decode()
    assert [
        name for name in ("--format", "--workers", "--on-error", "--config", "--progress") if name not in text
    ] == []
    assert [name for name in ("--rows-per-shard", "--resume", "--quarantine", "--dry-run") if name in text] == []


def test_an_unknown_command_is_a_usage_error(run_cli: RunCli) -> None:
    result = run_cli("convrt")
    assert result.returncode == 2 and b"convert" in result.stderr


def test_the_list_of_packages_is_what_lies_on_the_disk() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    mapped = {"cli", "labelers", "packers"}
    on_disk = {
        ".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "sft_toolkit").rglob("__init__.py")
    } | {f"sft_toolkit.{name}" for name in mapped}
    assert set(config["packages"]) == on_disk
    assert all(not list((ROOT / name).glob("*/__init__.py")) for name in mapped)


@pytest.mark.parametrize(("closed", "code"), [("<&-", 1), (">&-", 0), ("2>&-", 0)])
def test_a_stream_that_the_caller_closed_is_an_empty_one(closed: str, code: int, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"id": "a", "messages": [{"role": "user", "content": "x"}]}\n')
    given = "-" if code else source
    shell = ["sh", "-c", f'exec "$0" "$@" {closed}', *cli_command("convert", given)]
    done = subprocess.run(shell, capture_output=True, timeout=60, check=False)
    assert done.returncode == code and b"Traceback" not in done.stderr
