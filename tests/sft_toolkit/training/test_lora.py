"""Low-rank adapters: what is trained, what stays, and both forms of what comes out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from sft_toolkit.errors import UsageError
from sft_toolkit.training.estimate import estimate
from sft_toolkit.training.options import ModelSource, Recipe, TrainOptions
from sft_toolkit.training.train import train
from tests.sft_toolkit.training.tiny import losses, tiny_config

pytest.importorskip("peft")
pytestmark = pytest.mark.usefixtures("no_ranks_before_or_after")

RECIPE = Recipe(steps=4, microbatches=2, learning_rate=1e-2, lora_rank=4, lora_alpha=8.0, weight_decay=0.0)


@pytest.fixture
def adapted(options: TrainOptions, tmp_path: Path) -> TrainOptions:
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(tiny_config(tied=True)).save_pretrained(tmp_path / "base")
    return replace(options, source=ModelSource(checkpoint=tmp_path / "base"), recipe=RECIPE)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return AutoModelForCausalLM.from_pretrained(folder).state_dict()


def test_adapters_learn_and_merge_and_the_adapter_alone_is_the_same_model(
    adapted: TrainOptions, tmp_path: Path
) -> None:
    train(replace(adapted, checkpoint_every=2))
    assert losses(adapted)[-1] < losses(adapted)[0] - 0.02
    base, found = weights(tmp_path / "base"), weights(adapted.output / "model")
    changed = {name for name in base if not torch.equal(base[name], found[name])}
    assert changed and all(name.endswith("_proj.weight") for name in changed)
    assert all(int(torch.linalg.matrix_rank((found[name] - base[name]).double(), atol=1e-6)) <= 4 for name in changed)
    alone = replace(adapted, output=tmp_path / "alone", adapter_only=True)
    train(alone)
    assert losses(alone) == losses(adapted)
    assert {path.suffix for path in (alone.output / "model").iterdir()} >= {".json", ".safetensors"}
    assert (alone.output / "model" / "adapter_model.safetensors").stat().st_size < 200_000
    ids = torch.arange(20)[None]
    with torch.no_grad():
        one, two = (AutoModelForCausalLM.from_pretrained(run.output / "model")(ids).logits for run in (adapted, alone))
    torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-4)


def test_an_adapted_run_resumes_bit_for_bit_from_its_checkpoint(adapted: TrainOptions, tmp_path: Path) -> None:
    train(replace(adapted, checkpoint_every=2, keep=9))
    whole = losses(adapted)
    for name in ("checksums.json", ".metadata"):
        (adapted.output / "checkpoints" / "step-00000004" / name).unlink()
    train(replace(adapted, resume=True))
    assert losses(adapted) == whole


def test_what_cannot_be_adapted_is_refused(adapted: TrainOptions, options: TrainOptions) -> None:
    with pytest.raises(UsageError, match="`lora_targets` nowhere: no such layers"):
        train(replace(adapted, recipe=replace(RECIPE, lora_targets=("nowhere",))))
    with pytest.raises(UsageError, match="`adapter_only` exports what `lora_rank` trains"):
        replace(options, adapter_only=True)


def test_a_dry_run_counts_states_of_adapters_alone(adapted: TrainOptions) -> None:
    full = estimate(replace(adapted, recipe=replace(RECIPE, lora_rank=0)), 1).memory.states
    assert estimate(adapted, 1).memory.states < 0.5 * full
