"""The exported folder: it is what was trained, and holds what the checkpoint held."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from sft_toolkit.errors import ToolkitError
from sft_toolkit.souping.checkpoint import open_checkpoint
from sft_toolkit.training import loading
from sft_toolkit.training.carried import carry_over
from sft_toolkit.training.export_check import first_documents
from sft_toolkit.training.options import ModelSource, Recipe, TrainOptions
from sft_toolkit.training.sequences import PackedFolder
from sft_toolkit.training.train import train
from tests.sft_toolkit.training.tiny import tiny_config

pytestmark = pytest.mark.usefixtures("no_ranks_before_or_after")


def from_base(options: TrainOptions, folder: Path, **more: torch.Tensor) -> TrainOptions:
    AutoModelForCausalLM.from_config(tiny_config()).save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    save_file({**tensors, **more}, folder / "model.safetensors", {"format": "pt"})
    return replace(options, source=ModelSource(checkpoint=folder), recipe=Recipe(steps=1), quiet=False)


MTP = "model.layers.2.mtp.weight"
"""A tensor of a third layer, which a model of two layers has no place for."""


def test_tensors_that_transformers_does_not_read_are_named_and_carried_over(
    options: TrainOptions, tmp_path: Path
) -> None:
    extra = torch.arange(16.0).reshape(4, 4)
    options, said = from_base(options, tmp_path / "base", **{MTP: extra}), []
    train(options, said.append)
    assert any(f"does not read 1 tensors ({MTP} …): they are not trained" in one for one in said)
    base, found = (open_checkpoint(folder).tensors for folder in (tmp_path / "base", options.output / "model"))
    assert set(base) == set(found)
    assert torch.equal(load_file(options.output / "model" / "model-carried.safetensors")[MTP], extra)
    assert AutoModelForCausalLM.from_pretrained(options.output / "model").config.num_hidden_layers == 2


def test_what_is_carried_into_sharded_files_is_in_their_index(options: TrainOptions, tmp_path: Path) -> None:
    from_base(options, tmp_path / "base", **{MTP: torch.ones(4)})
    AutoModelForCausalLM.from_config(tiny_config()).save_pretrained(tmp_path / "sharded", max_shard_size="100KB")
    carry_over(tmp_path / "base", tmp_path / "sharded", [MTP])
    found = open_checkpoint(tmp_path / "sharded").tensors
    assert set(found) == set(open_checkpoint(tmp_path / "base").tensors)


def test_a_model_that_plain_transformers_runs_otherwise_is_not_exported(
    options: TrainOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = loading.load_checked

    def altered(*given: object) -> object:
        model = checked(*given)
        made = model.causal_lm.base_model.norm
        made.register_forward_hook(lambda _, __, output: 2 * output)
        return model

    monkeypatch.setattr("sft_toolkit.training.train.load_checked", altered)
    options = from_base(options, tmp_path / "base")
    with pytest.raises(ToolkitError, match="the exported model is not the one that was trained"):
        train(options)
    assert not list(options.output.glob("model*"))
    assert (options.output / "checkpoints" / "step-00000001" / "checksums.json").exists()


def test_beginnings_of_documents_with_a_loss_are_evaluated(packed: Path) -> None:
    found = first_documents(PackedFolder(packed))
    assert len(found.lengths) == 8
    assert all(found.loss_mask[begin + 1 : end].any() for begin, end in pairwise(found.cu_seqlens))
    assert not found.loss_mask[found.cu_seqlens[:-1]].any()
