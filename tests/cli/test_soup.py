"""`kolibri-sft soup` as a process."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import cli_command
from tests.sft_toolkit.souping.checkpoints import bfloat16, read_patterns, write_safetensors

RunCli = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Three models of one parameter: 1, 2 and 4."""
    for name, value in (("a", 1), ("b", 2), ("c", 4)):
        (tmp_path / name).mkdir()
        write_safetensors(tmp_path / name / "model.safetensors", {"w": bfloat16(value)})
        (tmp_path / name / "chat_template.jinja").write_text(name)
    return [tmp_path / name for name in "abc"]


def parameter(model: Path) -> float:
    (bits,) = read_patterns(model)["w"]
    return float((bits.astype("uint32") << 16).view("float32"))


def test_it_writes_the_weighted_mean_and_says_what_became_of_the_tensors(
    run_cli: RunCli, runs: list[Path], tmp_path: Path
) -> None:
    """(1 + 2 * 2) / 3 = 5/3, which bfloat16 rounds to 1.6640625."""
    done = run_cli("soup", *runs[:2], "-o", tmp_path / "out", "--weights", "1,2")
    assert done.returncode == 0 and done.stdout == b""
    assert parameter(tmp_path / "out") == 1.6640625
    text = done.stderr.decode()
    assert "warning: chat_template.jinja differs" in text and "averaged" in text


def test_weights_belong_to_the_checkpoints_beside_which_they_stand(
    run_cli: RunCli, runs: list[Path], tmp_path: Path
) -> None:
    run_cli("soup", runs[1], runs[0], "-o", tmp_path / "out", "--weights", "2,1")
    assert parameter(tmp_path / "out") == 1.6640625


def test_the_summary_is_json_for_programs(run_cli: RunCli, runs: list[Path], tmp_path: Path) -> None:
    done = run_cli("soup", *runs, "-o", tmp_path / "out", "--json")
    recipe = json.loads(done.stdout.decode().splitlines()[-1])
    assert [entry["weight"] for entry in recipe["inputs"]] == ["1", "1", "1"]


def test_the_greedy_soup_keeps_what_the_command_likes(run_cli: RunCli, runs: list[Path], tmp_path: Path) -> None:
    """The score is the distance to 3.5: c alone 0.5; b and c together 3, no nearer; a and c 2.5."""
    script = tmp_path / "score.py"
    script.write_text(
        "import sys, numpy\nfrom safetensors import deserialize\n"
        "((_, entry),) = deserialize(open(sys.argv[1] + '/model.safetensors', 'rb').read())\n"
        "word = numpy.frombuffer(bytes(entry['data']), 'u2').astype('u4') << 16\n"
        "print(abs(float(word.view('f4')[0]) - 3.5))\n"
    )
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} {{model}}"
    done = run_cli("soup", *runs, "-o", tmp_path / "out", "--greedy", "--score-command", command, "--lower-is-better")
    assert done.returncode == 0, done.stderr
    assert parameter(tmp_path / "out") == 4
    assert "greedy soup" in done.stderr.decode()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--weights", "1,2"], "2 for 3 checkpoints"),
        (["--weights", "1,x,1"], "weight x is not a number"),
        (["--weights", "1,-2,1"], "sum to zero"),
        (["--greedy"], "need each other"),
        (["--score-command", "x {model}"], "need each other"),
        (["--greedy", "--score-command", "x {model}", "--weights", "1,1,1"], "chooses the weights itself"),
        (["--dtype", "int8"], "--dtype: 'int8' is not one of 'bf16', 'f16', 'f32', 'f64'"),
        (["--max-shard-size", "lots"], "is not a file size"),
    ],
)
def test_a_request_that_makes_no_sense_is_a_usage_error(
    run_cli: RunCli, runs: list[Path], tmp_path: Path, options: list[str], message: str
) -> None:
    done = run_cli("soup", *runs, "-o", tmp_path / "out", *options)
    assert done.returncode == 2
    assert message in done.stderr.decode() and done.stderr.decode().count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_half_downloaded_checkpoint_ends_in_one_line_that_names_it(
    run_cli: RunCli, runs: list[Path], tmp_path: Path
) -> None:
    half = runs[1] / "model.safetensors"
    half.write_bytes(half.read_bytes()[:-1])
    done = run_cli("soup", *runs, "-o", tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.decode().startswith(f"error: {half}: tensor w ends at byte")
    assert done.stderr.decode().count("\n") == 1


def test_a_terminated_run_leaves_nothing_behind(runs: list[Path], tmp_path: Path) -> None:
    patterns = np.zeros(40_000_000, np.uint16)
    for run in runs[:2]:
        write_safetensors(run / "model.safetensors", {"w": ("BF16", patterns)})
    process = subprocess.Popen(cli_command("soup", *runs[:2], "-o", tmp_path / "out"), stderr=subprocess.DEVNULL)
    while process.poll() is None and not list(tmp_path.glob(".out.*")):
        time.sleep(0.001)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 143
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]


def test_neither_help_nor_a_soup_loads_a_deep_learning_framework(runs: list[Path], tmp_path: Path) -> None:
    code = (
        "import sys; from sft_toolkit.cli.main import run\n"
        "try:\n run()\nfinally:\n print(sorted({'torch', 'transformers', 'safetensors'} & set(sys.modules)))"
    )
    arguments = ["soup", str(runs[0]), str(runs[1]), "-o", str(tmp_path / "out"), "-q"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]"
