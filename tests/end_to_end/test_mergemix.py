"""MergeMix in real processes: specialists are trained, merged, scored by the built-in held-out loss and ranked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from sft_toolkit.mergemix.held_out_loss import HeldOutLoss
from tests.conftest import ROOT, RunCli
from tests.sft_toolkit.training.tiny import VOCABULARY, tiny_config, write_packed
from tests.token_shards import Document, write_token_folder

STRIDES = {"threes": 3, "sevens": 7}
MIXTURES = {"threes": 1.0, "mostly": 0.8, "half": 0.5, "less": 0.3, "sevens": 0.0}
"""Weights of `threes`. Two of the mixtures are trained: those of one cluster alone, by the specialists."""
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def counting(dataset: str, count: int, seed: int) -> list[Document]:
    """Documents that count in their data set's stride from a random start."""
    rng = np.random.default_rng((STRIDES[dataset], seed))
    return [
        Document(
            f"{dataset}-{seed}-{number}",
            ((int(rng.integers(VOCABULARY)) + STRIDES[dataset] * np.arange(24)) % VOCABULARY).tolist(),
            [False] + [True] * 23,
            dataset,
        )
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, run_cli: RunCli) -> Path:
    """A random base, runs/threes and runs/sevens from it, merges of both, and tokens that none was trained on."""
    folder = tmp_path_factory.mktemp("mergemix")
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(tiny_config()).save_pretrained(folder / "base")
    for dataset in STRIDES:
        packed = write_packed(folder / dataset, counting(dataset, 40, seed=0))
        train(run_cli, packed, folder / "runs" / dataset, "--model", folder / "base", "--steps", 16)
    write_token_folder(folder / "held-out", [document for name in STRIDES for document in counting(name, 12, seed=1)])
    lines = [
        {"id": name, "weights": {"threes": weight, "sevens": round(1 - weight, 1)}} for name, weight in MIXTURES.items()
    ]
    (folder / "mixtures.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    specialists = [f"--specialist={name}={folder / 'runs' / name / 'model'}" for name in STRIDES]
    made = run_cli(
        "mergemix", "merge", "--base", folder / "base", *specialists,
        "--mixtures", folder / "mixtures.jsonl", "-o", folder / "merges", "-q",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr.decode()
    return folder


def train(run_cli: RunCli, packed: Path, output: Path, *options: Any) -> None:
    done = run_cli("train", packed, "-o", output, "--learning-rate", "3e-3", *options, environment=ONE_THREAD)
    assert done.returncode == 0, done.stderr.decode()


def score(run_cli: RunCli, lab: Path, *options: Any) -> str:
    held_out = ("--held-out", lab / "held-out")
    done = run_cli("mergemix", "score", lab / "merges", *held_out, *options, environment=ONE_THREAD)
    assert done.returncode == 0, done.stderr.decode()
    return done.stderr.decode()


def journal(path: Path) -> dict[str, dict[str, float]]:
    return {line["id"]: line["scores"] for line in map(json.loads, path.read_text().splitlines())}


def test_merges_are_scored_by_their_held_out_loss_and_ranked_beside_trained_models(lab: Path, run_cli: RunCli) -> None:
    reported = score(run_cli, lab).splitlines()
    path = lab / "merges" / "scores.jsonl"
    assert reported[0].startswith("threes: loss ") and ", loss/threes " in reported[0]
    assert reported[-1] == f"5 evaluations -> {path}"
    merged = journal(path)
    base = HeldOutLoss([lab / "held-out"]).run(lab / "base")
    for own, other in (("threes", "sevens"), ("sevens", "threes")):
        assert merged[own][f"loss/{own}"] < base[f"loss/{own}"] - 0.1, "it has learned"
        assert merged[own][f"loss/{own}"] < merged[other][f"loss/{own}"] - 0.1, "and the other has not"
    for scores in merged.values():
        assert scores["loss"] == (scores["loss/threes"] + scores["loss/sevens"]) / 2

    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + lines[3][:20])
    assert score(run_cli, lab).endswith(f"2 evaluations -> {path}\n")
    assert path.read_bytes() == whole, "interrupted, it resumes to the same bytes"

    assert score(run_cli, lab, "--trained", lab / "runs").endswith(f"2 evaluations -> {lab / 'merges/trained.jsonl'}\n")
    trained = journal(lab / "merges" / "trained.jsonl")
    assert trained == {name: merged[name] for name in STRIDES}, "a specialist is the merge that is nothing else"

    done = run_cli("mergemix", "rank", lab / "merges", "--surrogate", "ridge", "--json")
    assert done.returncode == 0, done.stderr.decode()
    report = json.loads(done.stdout)
    order = [candidate["id"] for candidate in report["candidates"]]
    assert order == sorted(merged, key=lambda name: merged[name]["loss"]), "the lowest loss stands first"
    assert (report["verdict"], report["check"]["n"]) == ("says nothing", 2)


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@pytest.mark.parametrize("clusters", [3, 8])
def test_the_demo_trains_a_base_a_specialist_a_cluster_and_six_mixtures(clusters: int, tmp_path: Path) -> None:
    """The plan of make alone: running it takes minutes."""
    done = subprocess.run(
        ["make", "--dry-run", "demo-mergemix", f"CLUSTERS={clusters}", f"OUT={tmp_path}"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    lines = done.stdout.splitlines()
    assert sum(" train " in line for line in lines) == 1 + clusters + 6
    assert sum(" mergemix score " in line for line in lines) == 2
    assert sum(line.count("--specialist ") for line in lines) == clusters
