"""`kolibri-sft train` as a person meets it: help, wrong use, dry runs, errors of ranks in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import RunCli
from tests.sft_toolkit.training.tiny import counting_documents, tiny_config, write_packed
from tests.token_shards import Document


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("train")
    write_packed(folder, counting_documents(60))
    tiny_config().save_pretrained(folder / "config")
    return folder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "a model is needed, and one only; give --model or --init"),
        (["--model", "gone"], "gone: does not exist; models are read from the disk, not downloaded"),
        (["--init", "config", "--tokenizer", "gone"], "gone: does not exist"),
        (
            ["--init", "config", "--order", "sorted"],
            "--order: 'sorted' is not one of 'auto', 'window', 'sorted-buffer'",
        ),
        (["--init", "config", "--schedule", "step"], "--schedule: 'step' is not one of 'cosine', 'linear', 'wsd'"),
        (["--init", "config", "--warmup-ratio", "1.5"], "--warmup-ratio 1.5: not in [0, 1)"),
        (["--init", "config", "--learning-rate", "0"], "--learning-rate 0.0: not above 0"),
        (["--init", "config", "--schedule", "wsd", "--warmup", "0.5", "--decay", "0.6"], "leave no step between them"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(run_cli: RunCli, data: Path, arguments: list[str], message: str) -> None:
    done = run_cli("train", "packed", "-o", "run", *arguments, cwd=data)
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert not (data / "run").exists()


def test_a_dry_run_reports_size_steps_tokens_and_memory_and_writes_nothing(run_cli: RunCli, data: Path) -> None:
    options = ["--init", data / "config", "--microbatches", 2, "--epochs", 3, "--nproc", 2, "--dry-run"]
    done = run_cli("train", data / "packed", "-o", data / "dry", *options)
    assert (done.returncode, done.stderr) == (0, b"")
    reported = dict(line.strip().rsplit("  ", 1) for line in done.stdout.decode().splitlines()[2:])
    reported = {name.strip(): value.strip() for name, value in reported.items()}
    # the head and the lookup of 256 x 64; two layers: 36,864 in matrices, 160 in norms; one last norm
    assert reported["parameters"] == f"{2 * 256 * 64 + 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 160) + 64:,}"
    documents = counting_documents(60)
    assert reported["tokens"] == f"{3 * sum(len(one.tokens) for one in documents):,}"
    assert reported["loss tokens"] == f"{3 * sum(sum(one.mask) for one in documents):,}"
    assert reported["steps"] == f"{3 * -(-int(reported['sequences']) // 4)}"
    assert 0.5 < float(reported["efficiency"]) <= 1
    assert reported["order"] == "window" and float(reported["design effect (1: random batches)"]) >= 0
    assert not (data / "dry").exists()


def test_options_come_from_a_file_and_a_flag_beats_it(run_cli: RunCli, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "train.toml"
    file.write_text(f'[train]\ninit = "{data / "config"}"\nsteps = 7\nbetas = [0.8, 0.9]\nnproc = 3\n')
    done = run_cli("train", data / "packed", "-o", tmp_path / "run", "--config", file, "--steps", 9, "--dry-run")
    assert done.stdout.startswith(b"3 ranks\n"), done.stderr
    assert b" 9\n" in done.stdout


def test_a_fault_of_one_rank_is_one_line_and_ends_all(run_cli: RunCli, data: Path, tmp_path: Path) -> None:
    foreign = Document("foreign", [1, 300], [False, True])
    packed = write_packed(tmp_path, [*counting_documents(20), foreign])
    run = ["train", packed, "-o", tmp_path / "run", "--init", data / "config", "--nproc", 2]
    done = run_cli(*run, "--quiet", environment={"OMP_NUM_THREADS": "1"})
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, len(lines)) == (1, 1), lines
    assert "document 'foreign': token 300 is outside the model's vocabulary of 256" in lines[0]


def test_a_fault_that_all_ranks_meet_is_told_once(run_cli: RunCli, data: Path, tmp_path: Path) -> None:
    run = ["train", data / "packed.gone", "-o", tmp_path / "run", "--init", data / "config", "--nproc", 2]
    done = run_cli(*run, "--quiet", environment={"OMP_NUM_THREADS": "1"})
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, len(lines)) == (1, 1), lines
    assert "packed.gone: no shard folder" in lines[0]
