"""Ranks that share a sequence learn what one rank learns, in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import socket
import tempfile
from itertools import product
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from sft_toolkit.errors import ToolkitError
from sft_toolkit.training import isolation
from sft_toolkit.training.batch import Batch
from sft_toolkit.training.loading import load_checked
from sft_toolkit.training.model import read_config
from sft_toolkit.training.options import ModelSource, TrainOptions
from sft_toolkit.training.processes import joined_ranks
from tests.sft_toolkit.training.test_isolation import APART, PACKED, config_of, reference, save_random

FAMILIES = ["kolibri1", "qwen3", "gpt_oss", "gemma2"]


def on_ranks(ranks: int, context: int, folder: Path, results: str, replicas: int = 1) -> None:
    """Loss and gradients of a packed batch, or what was refused, from the first of several forked ranks."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    fork = multiprocessing.get_context("fork")
    started = [
        fork.Process(target=one_rank, args=(rank, ranks, context, replicas, port, folder, results))
        for rank in range(ranks)
    ]
    for one in started:
        one.start()
    for one in started:
        one.join(100)
    assert all(one.exitcode == 0 for one in started)


def one_rank(rank: int, ranks: int, context: int, replicas: int, port: int, folder: Path, results: str) -> None:
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    options = TrainOptions(folder, folder, ModelSource(checkpoint=folder), context=context, replicas=replicas)
    with joined_ranks(context, replicas) as joined:
        try:
            model = load_checked(options, read_config(options.source), joined, print)
        except ToolkitError as fault:
            torch.save(fault.message, results)
            return
        loss = model(Batch.of(isolation._probe(256)).part(rank % context, context))
        loss.backward()
        total = loss.detach()
        dist.all_reduce(total)
        gradients = {
            name: one.grad.full_tensor() for name, one in model.causal_lm.named_parameters() if one.grad is not None
        }
        if rank == 0:
            torch.save((total.item(), gradients), results)


@pytest.mark.parametrize(
    ("family", "context"),
    [
        ("kolibri1", 2),
        ("qwen3", 4),
        ("gpt_oss", 2),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in product(FAMILIES, (2, 4))),
    ],
)
def test_ranks_that_share_a_sequence_have_the_loss_and_gradients_of_plain_transformers(
    family: str, context: int, tmp_path: Path
) -> None:
    save_random(config_of(family, PACKED.get(family, {})), tmp_path)
    expected, wanted = reference(tmp_path, Batch.of(isolation._probe(256)))
    with tempfile.NamedTemporaryFile() as results:
        on_ranks(context, context, tmp_path, results.name)
        loss, found = torch.load(results.name, weights_only=True)
    assert loss == pytest.approx(expected, rel=1e-6)
    whole = torch.cat([gradient.flatten() for gradient in wanted.values()]).norm()
    difference = torch.cat([(found[name] - gradient).flatten() for name, gradient in wanted.items()]).norm()
    assert (difference / whole).item() <= 1e-5


def test_replicas_of_the_states_have_the_same_gradients(tmp_path: Path) -> None:
    save_random(config_of("qwen3", PACKED["qwen3"]), tmp_path)
    expected, wanted = reference(tmp_path, Batch.of(isolation._probe(256)))
    with tempfile.NamedTemporaryFile() as results:
        on_ranks(4, 4, tmp_path, results.name, replicas=2)
        loss, found = torch.load(results.name, weights_only=True)
    assert loss == pytest.approx(expected, rel=1e-6)
    whole = torch.cat([gradient.flatten() for gradient in wanted.values()]).norm()
    difference = torch.cat([(found[name] - gradient).flatten() for name, gradient in wanted.items()]).norm()
    assert (difference / whole).item() <= 1e-5


@pytest.mark.parametrize(
    ("family", "reason"),
    [("stablelm", "goes through one document after the other, which ranks cannot share"), ("three", "does not divide")],
)
def test_what_ranks_cannot_share_is_refused(family: str, reason: str, tmp_path: Path) -> None:
    if family == "three":
        options = {**PACKED["qwen3"], "num_attention_heads": 3, "num_key_value_heads": 1}
        config = config_of("qwen3", options)
    else:
        config = config_of(family, APART[family][0])
    save_random(config, tmp_path)
    with tempfile.NamedTemporaryFile() as results:
        on_ranks(2, 2, tmp_path, results.name)
        assert reason in torch.load(results.name, weights_only=True)


def test_parts_are_whole_together_and_what_lacks_is_a_document_without_loss() -> None:
    whole = Batch.of(isolation._probe(256))
    parts = [whole.part(number, 4) for number in range(4)]
    tokens = torch.cat([part.inputs["input_ids"] for part in parts], dim=1)
    assert tokens.shape == (1, 204)
    assert torch.equal(tokens[:, :203], whole.inputs["input_ids"])
    assert parts[0].inputs["cu_seq_lens_q"].tolist() == [0, 70, 71, 161, 173, 203, 204]
    places = torch.cat([part.predictors + 51 * number for number, part in enumerate(parts)])
    assert torch.equal(places, whole.predictors)
    assert torch.equal(torch.cat([part.targets for part in parts]), whole.targets)
