"""What a command says of wrong use and of data that it cannot read: one line, what and where, then what to do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sft_toolkit.cli.main import run
from sft_toolkit.cli.registry import COMMANDS
from tests.conftest import CASES, ROOT, cli_command

Fault = Callable[..., tuple[int, str]]
RECORD = {"id": "a", "messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]}


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Fault:
    """Exit code and the one line of a command that fails, run in a folder with the cases and a small data set."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(CASES / "command_line", tmp_path, dirs_exist_ok=True)
    shutil.copytree(ROOT / "sample_data" / "tokenizer", tmp_path / "tokenizer")
    (tmp_path / "a.jsonl").write_text(json.dumps(RECORD) + "\n")
    (tmp_path / "link.jsonl").symlink_to("a.jsonl")
    (tmp_path / "hard.jsonl").hardlink_to("a.jsonl")
    (tmp_path / "dangling.jsonl").symlink_to("nowhere")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.jsonl").write_text(json.dumps(RECORD) + "\n")
    (tmp_path / "folder" / "config.json").write_text('{\n "a": 1\n}\n')
    (tmp_path / "deep" / "data").mkdir(parents=True)
    (tmp_path / "deep" / "data" / "a.jsonl").write_text(json.dumps(RECORD) + "\n")
    (tmp_path / "table.csv").write_text("a,b\n")
    (tmp_path / "mac.jsonl").write_text(f"{json.dumps(RECORD)}\r{json.dumps(RECORD)}\r", newline="")
    (tmp_path / "nested.toml").write_text("[effort]\nmin-group = 3\n[effort.labl]\nseed = 1\n")
    (tmp_path / "deep_key.toml").write_text("[effort.label]\nmin-grup = 3\n")
    (tmp_path / "other_command.toml").write_text("[convert]\ncapacity = 3\n")
    (tmp_path / "no_list.toml").write_text('map = "a=b"\n')
    (tmp_path / "no_toml.toml").write_text("capacity: 3\n")
    (tmp_path / "choice.toml").write_text('[mask]\nrepeats = "never"\n')

    def read(line: str) -> tuple[int, str]:
        words = line.split()
        while re.fullmatch(r"KOLIBRI_SFT_\w+=.*", words[0]):
            monkeypatch.setenv(*words.pop(0).split("=", 1))
        monkeypatch.setattr(sys, "argv", ["kolibri-sft", *words])
        with pytest.raises(SystemExit) as end:
            run()
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
        return int(end.value.code or 0), said.removeprefix("error: ").rstrip("\n")

    return read


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        # configuration and variables
        ("convert a.jsonl --config c1.toml", 2, "--config: c1.toml: no command has an option capcity; did you mean ca"),
        ("convert a.jsonl --config c2.toml", 2, "--config: c2.toml: no command has an option capcity; did you mean ca"),
        ("convert a.jsonl --config c4.toml", 2, "--workers: 'two' is not a valid integer (from c4.toml: [convert] wor"),
        ("mask a.jsonl --config nested.toml", 2, "no command has a table [effort.labl]; did you mean label?"),
        ("mask a.jsonl --config deep_key.toml", 2, "[effort.label] has no option min-grup; did you mean min_group?"),
        ("mask a.jsonl --config other_command.toml", 2, "other_command.toml: [convert] has no option capacity"),
        ("convert a.jsonl --config no_list.toml", 2, "--map: not a list (from no_list.toml: map)"),
        ("convert a.jsonl --config no_toml.toml", 2, "--config: no_toml.toml: not TOML: "),
        ("convert a.jsonl --config none.toml", 2, "--config: none.toml: No such file or directory"),
        ("mask a.jsonl --config choice.toml", 2, "'strict', 'user-round' (from choice.toml: [mask] repeats)"),
        ("KOLIBRI_SFT_WORKERS=abc convert a.jsonl", 2, "--workers: 'abc' is not a valid integer (from KOLIBRI_SFT_WOR"),
        ("KOLIBRI_SFT_QUIET=maybe convert a.jsonl", 2, "--quiet: 'maybe' is not a valid boolean (from KOLIBRI_SFT_QUI"),
        ("KOLIBRI_SFT_WORKER=3 convert a.jsonl", 2, "no command reads the variable KOLIBRI_SFT_WORKER; did you mean K"),
        ("KOLIBRI_SFT_PACK_CAPACTY=3 mask a.jsonl", 2, "did you mean KOLIBRI_SFT_PACK_CAPACITY?"),
        ("KOLIBRI_SFT_EFFORT_LABEL_SED=3 mask a.jsonl", 2, "did you mean KOLIBRI_SFT_EFFORT_LABEL_SEED?"),
        ("convert a.jsonl --workers two", 2, "--workers: not a valid integer"),
        # nothing of the user's is overwritten
        ("mask a.jsonl -o a.jsonl --force", 2, "a.jsonl: is input and output; name a new file with --output"),
        ("mask link.jsonl -o a.jsonl --force", 2, "a.jsonl: is input and output"),
        ("mask a.jsonl -o link.jsonl --force", 2, "link.jsonl: is input and output"),
        ("mask a.jsonl -o hard.jsonl --force", 2, "hard.jsonl: is input and output"),
        ("mask folder -o folder --force", 2, "folder: is input and output; name a new folder with --output"),
        ("mask folder/a.jsonl -o folder --force", 2, "folder: is input and output"),
        ("mask folder/*.jsonl -o folder/a.jsonl --force", 2, "folder/a.jsonl: is input and output"),
        ("stats a.jsonl -o a.jsonl", 2, "a.jsonl: no Parquet file by its name"),
        (
            "effort apply folder/a.jsonl --edges a.jsonl --length-column n -o a.jsonl --force",
            2,
            "--output: a.jsonl: is read by --edges",
        ),
        (
            "mask a.jsonl --on-error quarantine --quarantine link.jsonl -o x.jsonl --force",
            2,
            "--quarantine link.jsonl: is an input",
        ),
        # inputs from anywhere
        ("convert dangling.jsonl", 2, "dangling.jsonl: is a link to nowhere, where nothing is; fix or remove the link"),
        ("convert loop.jsonl", 2, "loop.jsonl: is a link to loop.jsonl, where nothing is"),
        ("convert - -", 2, "-: given twice, and can be read once only; give it once"),
        ("convert - /dev/stdin", 2, "-: given twice"),
        ("convert array.json", 1, "array.json:1: the line is a JSON array, not one record; write one record a line, f"),
        ("convert folder", 1, "where it is no data, name the others, as in 'folder/*.jsonl'"),
        ("convert deep", 2, "deep: holds no JSONL, Parquet or Arrow files; they are in deep/data: name that folder"),
        ("convert table.csv", 2, "table.csv: unknown kind of file; known: .jsonl, .ndjson and .json, also with .gz, ."),
        ("convert mac.jsonl", 1, "mac.jsonl:1: the lines end in carriage returns alone"),
        ("convert nothing.jsonl", 2, "nothing.jsonl: no such file or folder"),
        ("convert toolsdict.jsonl", 1, "tools is an object whose a is 1"),
        # outputs that are no stream
        ("effort fit a.jsonl --length-column n -o -", 2, "--output: -: this is written as a file or a folder, not to"),
        ("grade fit a.jsonl -o -", 2, "--output: -: this is written as a file or a folder"),
        ("soup a b -o -", 2, "--output: -: this is written as a file or a folder"),
        ("train packed --init x -o -", 2, "--output: -: this is written as a file or a folder"),
        ("inspect a.jsonl a --html -", 2, "--html: -: this is written as a file or a folder"),
        ("pack a.jsonl -o -", 2, "packed shards are a folder; name it with --output"),
        ("pack - -o packed", 2, "-: not a folder; pack reads folders of token shards, as render writes them"),
        # what is missing
        ("distill a.jsonl", 2, "--teacher is missing; name an endpoint, local:FOLDER or local:FILE.gguf"),
        ("backfill a.jsonl -o x", 2, "--teacher is missing"),
        ("distill a.jsonl --teacher http://localhost:1/v1 --model m", 2, "output to stdout needs a place for the repl"),
        ("effort label a.jsonl", 2, "lengths need exactly one source; give either --tokenizer or --length-column"),
        ("grade collect a.jsonl", 2, "labels need exactly one source; give either --teacher or --label-column"),
        ("mergemix score merges", 2, "scores need exactly one source; give --held-out TOKENS or --score-command"),
        ("render a.jsonl", 2, "Missing option '--tokenizer'"),
        ("render a.jsonl --tokenizer tokenizer/tokenizer.json", 1, "tokenizer/tokenizer.json: is a file; --tokenizer"),
        ("render a.jsonl --tokenizer Qwen/Qwen3-8B", 1, "Qwen/Qwen3-8B: no such folder; if it is a name on the hub, g"),
        ("effort apply a.jsonl --edges a.jsonl --length-column n", 1, "a.jsonl: not a file of edges: "),
        ("convrt a.jsonl", 2, "No such command 'convrt'"),
        ("convert a.jsonl --worker 3", 2, "No such option: --worker"),
    ],
)  # fmt: skip
def test_an_error_is_one_line_that_says_what_and_what_to_do(line: str, code: int, said: str, fault: Fault) -> None:
    got, message = fault(line)
    assert said in message
    assert got == code
    assert "Traceback" not in message and "Errno" not in message and ".tmp" not in message


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_that_no_command_has_is_one_line_that_names_the_help(name: str, fault: Fault) -> None:
    code, message = fault(f"{name} --no-such-option")
    assert code == 2 and "--no-such-option" in message


def test_a_full_disk_is_named_as_the_place_that_is_full(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("/dev/full is not there")
    source = tmp_path / "a.jsonl"
    source.write_text(json.dumps(RECORD) + "\n")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(cli_command("convert", source), stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1].partition(b";")[0]) == (
        1,
        b"error: standard output: no space left on the disk",
    )


def test_a_pipe_of_the_shell_is_an_input(tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text(json.dumps(RECORD) + "\n")
    command = " ".join(map(str, cli_command("effort", "label", "--length-column", "n")))
    given = tmp_path / "n.jsonl"
    given.write_text(json.dumps({**RECORD, "n": [3]}) + "\n")
    shell = f"{command} <(cat {given}) -o {tmp_path}/shards; {' '.join(cli_command('convert'))} /dev/stdin < {source}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["id"] == "a"
    assert (tmp_path / "shards" / "manifest.json").is_file()
