"""Packed documents are trained as they would be alone, or the model is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    CohereConfig,
    Gemma2Config,
    GPT2Config,
    GraniteConfig,
    Mamba2Config,
    MistralConfig,
    PreTrainedConfig,
)

from sft_toolkit.errors import ToolkitError
from sft_toolkit.training.isolation import require_isolation, require_no_dropout, require_supported
from sft_toolkit.training.model import PackedModel, load_sharded, read_config
from sft_toolkit.training.options import ModelSource, Recipe, TrainOptions
from sft_toolkit.training.processes import Ranks
from sft_toolkit.training.reader import Reader
from sft_toolkit.training.sequences import PackedFolder
from tests.sft_toolkit.training.tiny import tiny_config

_SMALL = {"vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2, "max_position_embeddings": 512}
_ATTENTION = {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "head_dim": 16}


def loaded(
    config: PreTrainedConfig, folder: Path, ranks: Ranks, checkpoint: bool = False, recipe: Recipe | None = None
) -> PackedModel:
    """The model of a configuration, or of a checkpoint with its random weights, as training loads it."""
    config.save_pretrained(folder)
    if checkpoint:
        torch.manual_seed(1)
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    source = ModelSource(checkpoint=folder) if checkpoint else ModelSource(init=folder)
    options = TrainOptions(packed=folder, output=folder, source=source, recipe=recipe or Recipe())
    return load_sharded(options, read_config(source), ranks.mesh)


@pytest.mark.parametrize("family", ["qwen3", "llama", "qwen3_moe"])
@pytest.mark.parametrize("tied", [False, True])
def test_packed_logits_and_loss_are_those_of_each_document_alone(
    family: str, tied: bool, packed: Path, tmp_path: Path, ranks: Ranks
) -> None:
    model = loaded(tiny_config(family, tied), tmp_path, ranks, checkpoint=True)
    assert require_isolation(model, bf16=False, device=ranks.device).logits <= 2e-6
    plain = AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="eager")
    reader = Reader.of(PackedFolder(packed), plain.config, ranks.device)
    batch = reader.batch(0)
    sequence = reader.packed.sequence(0)
    with torch.no_grad():
        logits, loss = model.logits(**batch.inputs)[0], model(batch)
        documents = batch.inputs["input_ids"].split(sequence.lengths.tolist(), dim=1)
        alone = [plain(input_ids=document).logits[0] for document in documents]
    assert len(documents) > 1
    assert (logits - torch.cat(alone)).abs().max().item() <= 2e-6
    labels = torch.where(torch.from_numpy(sequence.loss_mask), batch.inputs["input_ids"][0], -100)
    expected = sum(
        F.cross_entropy(part[:-1], wanted[1:], reduction="sum", ignore_index=-100).item()
        for part, wanted in zip(alone, labels.split(sequence.lengths.tolist()), strict=True)
        if len(wanted) > 1
    )
    assert loss.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (MistralConfig(**_SMALL, **_ATTENTION, sliding_window=64), "mistral: sliding_attention is not supported"),
        (Gemma2Config(**_SMALL, **_ATTENTION), "gemma2: sliding_attention is not supported"),
    ],
)
def test_attention_that_does_not_reach_the_whole_document_is_refused(config: PreTrainedConfig, reason: str) -> None:
    with pytest.raises(ToolkitError, match=reason):
        require_supported(config)


def test_dropout_of_attention_is_refused_before_anything_is_loaded() -> None:
    with pytest.raises(ToolkitError, match=r"gpt2: dropout of attention is not supported, attn_pdrop is 0\.1"):
        require_no_dropout(GPT2Config())
    with pytest.raises(ToolkitError, match=r"granite: .* attention_dropout is 0\.2"):
        require_no_dropout(GraniteConfig(**_SMALL, **_ATTENTION, attention_dropout=0.2))
    require_no_dropout(tiny_config())


def test_a_window_that_is_switched_off_is_no_window() -> None:
    require_supported(MistralConfig(**_SMALL, **_ATTENTION, sliding_window=None))
    require_supported(tiny_config("qwen3"))


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (
            Mamba2Config(vocab_size=256, hidden_size=64, num_hidden_layers=2, num_heads=8, head_dim=16, n_groups=1),
            "mamba2: 2 of 2 layers do not attend through transformers' attention interface",
        ),
        (BloomConfig(vocab_size=256, hidden_size=64, n_layer=2, n_head=4), "bloom: 2 of 2 layers do not attend"),
        (GraniteConfig(**_SMALL, **_ATTENTION, logits_scaling=8.0), "logit scale"),
        (CohereConfig(**_SMALL, **_ATTENTION, logit_scale=0.25), "logit scale"),
        (
            Gemma2Config(**_SMALL, **_ATTENTION, layer_types=["full_attention"] * 2, final_logit_softcapping=0.1),
            "softcap|soft-capping",
        ),
    ],
    ids=lambda value: value.model_type if isinstance(value, PreTrainedConfig) else "",
)
def test_a_model_that_packing_would_change_is_refused(config: Any, reason: str, tmp_path: Path, ranks: Ranks) -> None:
    with pytest.raises(ToolkitError, match=reason):
        require_isolation(loaded(config, tmp_path, ranks), bf16=False, device=ranks.device)


def test_a_model_that_does_not_heed_boundaries_is_found_out(tmp_path: Path, ranks: Ranks) -> None:
    def join_documents(_: object, args: tuple[Any, ...], inputs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        ends = torch.tensor([0, inputs["input_ids"].size(1)], dtype=torch.int32)
        return args, {**inputs, "cu_seq_lens_q": ends, "max_length_q": int(ends[1])}

    model = loaded(tiny_config(), tmp_path, ranks)
    model.causal_lm.model.register_forward_pre_hook(join_documents, with_kwargs=True)
    with pytest.raises(ToolkitError, match="qwen3: packed documents see one another: logits differ by"):
        require_isolation(model, bf16=False, device=ranks.device)


def test_in_bfloat16_the_check_leaves_room_for_rounding_alone(tmp_path: Path, ranks: Ranks) -> None:
    model = loaded(tiny_config(), tmp_path, ranks, recipe=Recipe(bf16=True))
    found = require_isolation(model, bf16=True, device=ranks.device)
    assert 1e-4 < found.relative < 0.02
    assert found.loss < 1e-4
