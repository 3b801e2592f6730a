"""`kolibri-sft train` in real processes: ranks, kills, resumes, and the model that comes out."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from transformers import AutoModelForCausalLM

from sft_toolkit.packers import plan_for
from sft_toolkit.training.sequences import PackedFolder
from tests.conftest import RunCli, cli_command
from tests.sft_toolkit.training.tiny import counting_documents, tiny_config, write_packed
from tests.token_shards import Document

STEPS = 60
RECIPE = ("--steps", STEPS, "--order", "random", "--learning-rate", "3e-3", "--checkpoint-every", "5", "--keep", "3")
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`packed`, one of whose sequences has no loss, and the configuration of a model."""
    folder = tmp_path_factory.mktemp("train")
    silent = Document("silent", [7] * 128, [False] * 128)
    write_packed(folder, [*counting_documents(40), silent])
    tiny_config().save_pretrained(folder / "config")
    return folder


@pytest.fixture(scope="module")
def two_ranks(data: Path, run_cli: RunCli) -> Path:
    """A run that nothing disturbed."""
    done = run_cli(*command(data, "two"), "--nproc", 2, "--validation", data / "packed", environment=ONE_THREAD)
    assert done.returncode == 0, done.stderr.decode()
    return data / "two"


def command(data: Path, output: str, microbatches: int = 2) -> list[Any]:
    model = ("--init", data / "config", "--microbatches", microbatches)
    return ["train", data / "packed", "-o", data / output, *model, *RECIPE]


def rows(run: Path) -> list[dict[str, Any]]:
    return [row for line in (run / "metrics.jsonl").read_text().splitlines() if "loss" in (row := json.loads(line))]


def learned(run: Path) -> list[tuple[float, ...]]:
    """What must be the same, bit for bit, however often a run was interrupted."""
    return [(row["step"], row["loss"], row["grad_norm"], row["learning_rate"]) for row in rows(run)]


def complete(run: Path) -> list[Path]:
    return sorted(path.parent for path in run.glob("checkpoints/*/checksums.json"))


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    while not condition():
        assert process.poll() is None, process.stderr.read().decode() if process.stderr else "it ended"
        time.sleep(0.005)


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the launcher and its ranks, and wait until they are gone."""
    family = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    for member in family:
        member.kill()
    process.wait()
    psutil.wait_procs(family)


def start(*arguments: Any) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **ONE_THREAD}
    return subprocess.Popen(cli_command(*arguments), stderr=subprocess.PIPE, env=environment)


def test_the_loss_falls_and_the_model_generates_in_plain_transformers(two_ranks: Path) -> None:
    losses = [row["loss"] for row in rows(two_ranks)]
    assert len(losses) == STEPS
    assert losses[0] > 5.4
    assert losses[-1] < 3.5
    model = AutoModelForCausalLM.from_pretrained(two_ranks / "model")
    generated = model.generate(torch.tensor([[10, 13, 16]]), max_new_tokens=4, do_sample=False)
    assert generated.shape == (1, 7)


def test_evaluation_reports_the_mean_loss_of_all_sequences(data: Path, two_ranks: Path) -> None:
    reported = json.loads((two_ranks / "metrics.jsonl").read_text().splitlines()[-1])
    last = rows(two_ranks)[-1]["loss"]
    assert reported["step"] == STEPS
    assert reported["eval_loss"] == pytest.approx(last, abs=0.3)
    assert reported["eval_loss_tokens"] == sum(sum(document.mask) for document in counting_documents(40))


def test_the_model_that_is_exported_is_the_last_checkpoint_bit_for_bit(two_ranks: Path, tmp_path: Path) -> None:
    dcp_to_torch_save(complete(two_ranks)[-1], tmp_path / "whole.pt")
    saved = torch.load(tmp_path / "whole.pt", weights_only=True)["model"]
    exported = AutoModelForCausalLM.from_pretrained(two_ranks / "model").state_dict()
    assert {name.removeprefix("causal_lm.") for name in saved} == set(exported)
    assert all(torch.equal(exported[name.removeprefix("causal_lm.")], tensor) for name, tensor in saved.items())


def test_old_checkpoints_go(two_ranks: Path) -> None:
    assert [path.name for path in complete(two_ranks)] == ["step-00000050", "step-00000055", "step-00000060"]


def test_one_rank_and_two_learn_the_same(data: Path, two_ranks: Path, run_cli: RunCli) -> None:
    done = run_cli(*command(data, "one", microbatches=4), environment=ONE_THREAD)
    assert done.returncode == 0, done.stderr.decode()
    for one, two in zip(rows(data / "one"), rows(two_ranks), strict=True):
        assert one["loss_tokens"] == two["loss_tokens"]
        assert one["loss"] == pytest.approx(two["loss"], abs=1e-6)
        assert one["grad_norm"] == pytest.approx(two["grad_norm"], abs=1e-4)
    counts = [row["tokens"] - row["loss_tokens"] for row in rows(two_ranks)]
    assert max(counts) >= 128, "no step held the sequence without loss"


def test_two_ranks_that_share_sequences_learn_what_one_learns_and_one_resumes_them(
    data: Path, two_ranks: Path, run_cli: RunCli
) -> None:
    arguments = command(data, "shared", microbatches=4)
    done = run_cli(*arguments, "--nproc", 2, "--context", 2, environment=ONE_THREAD)
    assert done.returncode == 0, done.stderr.decode()
    shutil.rmtree(complete(data / "shared")[-1])
    done = run_cli(*arguments, "--resume", environment=ONE_THREAD)
    assert done.returncode == 0, done.stderr.decode()
    for shared, two in zip(rows(data / "shared"), rows(two_ranks), strict=True):
        assert shared["loss_tokens"] == two["loss_tokens"]
        assert shared["loss"] == pytest.approx(two["loss"], abs=1e-6)


def test_killed_and_terminated_runs_go_on_bit_for_bit_and_on_one_rank_too(
    data: Path, two_ranks: Path, run_cli: RunCli
) -> None:
    arguments = [*command(data, "killed"), "--nproc", 2]
    killed = data / "killed"
    running = start(*arguments)
    wait_until(lambda: len(complete(killed)) >= 2, running)
    kill_all(running)
    assert len(rows(killed)) < STEPS
    assert not (killed / "model").exists()
    torn = complete(killed)[-1]
    shutil.copytree(killed, data / "fewer")

    running = start(*arguments, "--resume")
    begun = len(rows(killed))
    wait_until(lambda: len(rows(killed)) > begun, running)
    os.kill(running.pid, signal.SIGTERM)
    assert (running.wait(), running.stderr.read().decode().count("error")) == (143, 0)
    last = rows(killed)[-1]["step"]
    assert last < STEPS
    assert complete(killed)[-1].name == f"step-{last:08d}"

    launcher = [Path(sys.executable).with_name("torchrun"), "--nproc-per-node", "2", "--no-python"]
    resumed = subprocess.run(
        [*map(str, launcher), *cli_command(*command(data, "killed"), "--resume")],
        capture_output=True,
        env={**os.environ, **ONE_THREAD},
    )
    assert resumed.returncode == 0, resumed.stderr.decode()
    assert learned(killed) == learned(two_ranks)

    (data / "fewer" / torn.relative_to(killed) / "checksums.json").unlink()
    before = complete(data / "fewer")
    done = run_cli(*command(data, "fewer"), "--resume", environment=ONE_THREAD)
    assert done.returncode == 0, done.stderr.decode()
    assert before
    for one, two in zip(rows(data / "fewer"), rows(two_ranks), strict=True):
        assert one["loss"] == pytest.approx(two["loss"], abs=1e-6)


def test_ranks_end_with_their_launcher_and_save_first(data: Path) -> None:
    running = start(*command(data, "orphans"), "--nproc", 2)
    wait_until(lambda: len(complete(data / "orphans")) >= 1, running)
    ranks = psutil.Process(running.pid).children(recursive=True)
    running.kill()
    running.wait()
    assert not psutil.wait_procs(ranks, timeout=120)[1]
    last = rows(data / "orphans")[-1]["step"]
    assert last < STEPS
    assert complete(data / "orphans")[-1].name == f"step-{last:08d}"


def test_a_rank_that_is_killed_ends_all_with_one_line(data: Path) -> None:
    running = start(*command(data, "lost"), "--nproc", 2, "--quiet")
    wait_until(lambda: (data / "lost" / "metrics.jsonl").exists() and bool(rows(data / "lost")), running)
    ranks = psutil.Process(running.pid).children(recursive=True)
    ranks[-1].kill()
    _, reported = running.communicate(timeout=60)
    assert not psutil.wait_procs(ranks, timeout=10)[1]
    assert running.returncode == 128 + signal.SIGKILL
    assert (
        reported.decode() == "error: another rank is gone or does not answer: was it killed?; continue with --resume\n"
    )


def test_out_of_memory_names_the_option_that_helps(tmp_path: Path) -> None:
    wide = tiny_config()
    wide.intermediate_size, wide.max_position_embeddings = 100_000, 4096
    wide.save_pretrained(tmp_path / "config")
    packed = write_packed(tmp_path, [Document("long", [1] * 4096, [False] + [True] * 4095)], capacity=4096)
    arguments = cli_command("train", packed, "-o", tmp_path / "run", "--init", tmp_path / "config")
    limited = ["bash", "-c", 'ulimit -v 4000000; exec "$@"', "bash", *arguments, "--quiet"]
    done = subprocess.run(limited, capture_output=True, env={**os.environ, **ONE_THREAD})
    assert done.returncode == 1
    expected = "error: step 1: out of memory on a sequence of 4,096 tokens; try --activation-checkpointing\n"
    assert done.stderr.decode() == expected


SLOW_TO_SAVE = """
import os, time
from torch import nn
from torch.distributed.checkpoint import FileSystemWriter

def slowly(act, seconds):
    return lambda *given: (time.sleep(seconds), act(*given))[1]

if os.environ["RANK"] == "0":
    FileSystemWriter.write_data = slowly(FileSystemWriter.write_data, 4)
nn.utils.clip_grad_norm_ = slowly(nn.utils.clip_grad_norm_, 1)

from sft_toolkit.cli.main import run
run()
"""
"""One rank writes a checkpoint while the other has written its part, and both are a step further."""


def test_a_loss_that_is_not_a_number_ends_all_ranks_while_a_checkpoint_is_written(tmp_path: Path) -> None:
    documents = [
        Document(f"{name}-{number}", [token] * 128, [False] + [True] * 127)
        for name, token, count in (("good", 3, 11), ("bad", 201, 1))
        for number in range(count)
    ]
    packed = write_packed(tmp_path, documents)
    folder = PackedFolder(packed)
    bad = next(number for number in range(len(folder)) if folder.sequence(number).ids == ["bad-0"])
    seed = next(seed for seed in range(99) if bad in plan_for("random", folder.index.cost, 2, seed=seed).step(0, 1))
    model = AutoModelForCausalLM.from_config(tiny_config())
    with torch.no_grad():
        model.get_input_embeddings().weight[201] = float("nan")
    model.save_pretrained(tmp_path / "poisoned")
    script = tmp_path / "slow.py"
    script.write_text(SLOW_TO_SAVE)
    launcher = [Path(sys.executable).with_name("torchrun"), "--nproc-per-node", "2", script]
    run = ["train", packed, "-o", tmp_path / "run", "--model", tmp_path / "poisoned", "--quiet"]
    order = ("--order", "random", "--seed", seed, "--checkpoint-every", "1")
    done = subprocess.run(
        [*map(str, [*launcher, *run, *order])], capture_output=True, env={**os.environ, **ONE_THREAD}, timeout=120
    )
    assert "step 2: loss or gradient is not finite; documents: bad-0; " in done.stderr.decode()
