"""`effort label` in pieces: killed and resumed, shared by an array job, looked at beforehand."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import RunCli, cli_command

ROWS_PER_SHARD = 200
COMMON = ["--length-column", "lengths", "--rows-per-shard", str(ROWS_PER_SHARD), "--workers", "2"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """6,000 records of one exchange each, 100 to 999 tokens of reasoning."""
    path = tmp_path / "in.jsonl"
    lengths = np.random.default_rng(5).integers(100, 1000, 6_000).tolist()
    path.write_text("".join(line(number, length) for number, length in enumerate(lengths)))
    return path


def line(number: int, length: int) -> str:
    messages = [{"role": "user", "content": f"Frage {number}"}, {"role": "assistant", "content": "Antwort " * 20}]
    return json.dumps({"id": f"r{number}", "messages": messages, "lengths": [length]}) + "\n"


def files(folder: Path) -> dict[str, bytes]:
    """The shards, and the edges beside them."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name.startswith(("part-", "effort"))}


def lengthen_behind_the_back(path: Path, block: int) -> None:
    """Change the lengths of a block amid the file, so that the file looks untouched."""
    before = path.stat()
    lines = path.read_text().splitlines(keepends=True)
    for number in range(block * ROWS_PER_SHARD, (block + 1) * ROWS_PER_SHARD):
        lines[number] = line(number, 999)
    path.write_text("".join(lines))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


def kill_in_the_second_pass(source: Path, target: Path, block: int) -> None:
    """Kill the run as soon as `block` counts as finished."""
    running = subprocess.Popen(cli_command("effort", "label", source, *COMMON, "-o", target), stderr=subprocess.DEVNULL)
    while not (target / ".progress" / f"part-{block:05d}.json").exists():
        assert running.poll() is None
        time.sleep(0.01)
    running.kill()
    running.wait()
    assert not (target / "manifest.json").exists()


def test_a_killed_run_goes_on_without_fitting_again_and_ends_in_the_same_bytes(
    source: Path, run_cli: RunCli, tmp_path: Path
) -> None:
    whole = run_cli("effort", "label", source, *COMMON, "-o", tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    kill_in_the_second_pass(source, tmp_path / "killed", block=3)
    lengthen_behind_the_back(source, block=3)  # a second fit would find other edges
    resumed = run_cli("effort", "label", source, *COMMON, "-o", tmp_path / "killed", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert len(files(tmp_path / "whole")) == 31
    assert files(tmp_path / "killed") == files(tmp_path / "whole")
    anew = run_cli("effort", "label", source, *COMMON, "-o", tmp_path / "killed", "--force")
    assert anew.returncode == 0, anew.stderr
    assert files(tmp_path / "killed") != files(tmp_path / "whole")


@pytest.mark.parametrize("change", [["--seed", "1"], ["--length-column", "others"], []])
def test_a_run_of_other_options_or_inputs_is_not_gone_on_with(
    change: list[str], source: Path, run_cli: RunCli, tmp_path: Path
) -> None:
    kill_in_the_second_pass(source, tmp_path / "out", block=1)
    if not change:
        lengthen_behind_the_back(source, block=3)
        os.utime(source)
    refused = run_cli("effort", "label", source, *COMMON, *change, "-o", tmp_path / "out", "--resume")
    assert refused.returncode == 2
    assert b"was begun from other inputs or options" in refused.stderr


def test_a_finished_run_is_not_fitted_again_and_its_edges_serve_apply(
    source: Path, run_cli: RunCli, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    assert run_cli("effort", "label", source, *COMMON, "-o", target).returncode == 0
    refused = run_cli("effort", "label", source, *COMMON, "-o", target)
    assert refused.returncode == 2 and b"holds a finished run; name another --output" in refused.stderr
    applied = run_cli("effort", "apply", source, *COMMON, "--edges", target / "effort_edges.json", "-o", tmp_path / "b")
    assert applied.returncode == 0, applied.stderr
    assert files(tmp_path / "b") == files(target)
    lengthen_behind_the_back(source, block=3)
    resumed = run_cli("effort", "label", source, *COMMON, "-o", target, "--resume")
    assert resumed.returncode == 0 and b"finished already" in resumed.stderr


def test_the_parts_of_an_array_job_share_one_fit(source: Path, run_cli: RunCli, tmp_path: Path) -> None:
    assert run_cli("effort", "label", source, *COMMON, "-o", tmp_path / "whole").returncode == 0
    for part in (1, 0):
        done = run_cli("effort", "label", source, *COMMON, "-o", tmp_path / "parts", "--shard", f"{part}/2")
        assert done.returncode == 0, done.stderr
        lengthen_behind_the_back(source, block=3)  # which part 1 has written
    assert files(tmp_path / "parts") == files(tmp_path / "whole")


@pytest.mark.parametrize("piped", [False, True])
def test_a_dry_run_fits_on_the_first_rows_and_says_so(
    piped: bool, source: Path, run_cli: RunCli, tmp_path: Path
) -> None:
    given = {"stdin": source.read_bytes()} if piped else {}
    arguments = ["effort", "label", "-" if piped else source, "--length-column", "lengths", "--dry-run"]
    reported = run_cli(*arguments, **given)
    assert reported.returncode == 0, reported.stderr
    assert b"edges fitted on the first 256 records alone" in reported.stderr
    summary = json.loads(run_cli(*arguments, "--json", **given).stdout)
    (tmp_path / "head.jsonl").write_text("".join(source.read_text().splitlines(keepends=True)[:256]))
    head = run_cli("effort", "label", tmp_path / "head.jsonl", "--length-column", "lengths", "--json")
    assert (summary["in"], summary["fitted_on_first"]) == (256, 256)
    assert summary["splits"] == json.loads(head.stderr)["splits"]
    assert "fitted_on_first" not in json.loads(head.stderr)
