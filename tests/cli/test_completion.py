"""TAB completes commands, options, choices, files and folders, in each shell, and starts no Python for it."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import get_args

import pytest

from sft_toolkit import choices
from sft_toolkit.cli.completion_scripts import SCRIPTS, completed_commands
from sft_toolkit.cli.registry import COMMANDS

LINES: list[tuple[str, set[str], set[str]]] = [
    ("", {"convert", "effort", "completion"}, {"--help", "label"}),
    ("ef", {"effort"}, {"convert"}),
    ("effort ", {"fit", "apply", "label", "probe"}, {"convert", "here.jsonl"}),
    ("convert --dri", {"--driver"}, {"--dataset"}),
    ("convert --driver ", {"local", "ray"}, {"here.jsonl"}),
    ("convert a.jsonl --format sh", {"sharegpt"}, {"openai"}),
    ("mask --repeats ", {"default", "strict", "user-round"}, set()),
    ("effort label --tokenizer ", {"folder"}, {"here.jsonl"}),
    ("effort label --min", {"--min-group"}, set()),
    ("convert --config h", {"here.jsonl"}, {"folder"}),
    ("convert h", {"here.jsonl"}, {"--help"}),
    ("completion ", {"bash", "zsh", "fish"}, {"here.jsonl"}),
]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    (folder / "here.jsonl").touch()
    (folder / "folder").mkdir()
    commands = completed_commands()
    for shell, write in SCRIPTS.items():
        (folder / f"script.{shell}").write_text(write(commands))
    return folder


def require(shell: str) -> str:
    return shutil.which(shell) or pytest.skip(f"{shell} is not installed")


def offered_by_bash(line: str, folder: Path) -> list[str]:
    words = ["kolibri-sft", *line.split(" ")]
    code = (
        f"source {folder}/script.bash; compopt() {{ :; }}; COMP_WORDS=({' '.join(repr(word) for word in words)}); "
        f"COMP_CWORD={len(words) - 1}; _kolibri_sft; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run([require("bash"), "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def offered_by_fish(line: str, folder: Path) -> list[str]:
    code = f"source {folder}/script.fish; complete -C 'kolibri-sft {line}'"
    environment = {**os.environ, "HOME": str(folder)}
    done = subprocess.run(
        [require("fish"), "-N", "-c", code], cwd=folder, capture_output=True, text=True, check=True, env=environment
    )
    return [text.split("\t")[0].rstrip("/") for text in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize(("line", "wanted", "unwanted"), LINES)
def test_a_line_is_offered_what_goes_on_there(
    shell: str, line: str, wanted: set[str], unwanted: set[str], scripts: Path
) -> None:
    begun = time.monotonic()
    offered = set({"bash": offered_by_bash, "fish": offered_by_fish}[shell](line, scripts))
    assert wanted <= offered
    assert not unwanted & offered
    assert time.monotonic() - begun < 5, "a table, not a program; a second and less on an idle machine"


def test_zsh_completes_on_a_terminal(scripts: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "PS1": "> ", "ZDOTDIR": str(scripts)}
    shell = subprocess.Popen(
        [require("zsh"), "-f", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=scripts, env=environment
    )
    os.close(theirs)
    try:
        start = f"autoload -U compinit; compinit -u -d {scripts}/dump; source {scripts}/script.zsh; echo rea''dy\n"
        os.write(ours, start.encode())
        assert "ready" in read_until(ours, "ready")
        for typed, completed in (("kolibri-sft eff\tlab\t", "effort label"), (" --driver r\t", "--driver ray")):
            os.write(ours, typed.encode())
            assert completed in read_until(ours, completed)
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)


def read_until(terminal: int, wanted: str) -> str:
    """What the terminal shows up to `wanted`, or within ten seconds."""
    seen, until = "", time.monotonic() + 10
    while wanted not in seen and time.monotonic() < until:
        if select.select([terminal], [], [], 0.2)[0]:
            seen += os.read(terminal, 65536).decode(errors="replace")
            seen = re.sub("\x1b\\[[0-9;]*m| \x08", "", seen)
    return seen


def test_every_command_and_every_shell_is_in_the_table() -> None:
    paths = {command.path for command in completed_commands()}
    assert {f"/{name}" for name in COMMANDS} <= paths
    assert tuple(SCRIPTS) == get_args(choices.Shell)
