"""Documents are trained as they would be alone: packed, or one after the other; a head that is not known is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import CONFIG_MAPPING, AutoConfig, AutoModelForCausalLM, GPT2Config, GraniteConfig, PreTrainedConfig

from sft_toolkit.errors import ToolkitError
from sft_toolkit.training import isolation
from sft_toolkit.training.attention import ATTENTION
from sft_toolkit.training.batch import Batch
from sft_toolkit.training.head import head_of
from sft_toolkit.training.isolation import (
    BFLOAT16_TOLERANCE,
    head_fault,
    packing_fault,
    require_causal,
    require_no_dropout,
)
from sft_toolkit.training.loading import load_checked
from sft_toolkit.training.model import PackedModel, load_sharded, read_config, without_gradients
from sft_toolkit.training.options import ModelSource, Recipe, TrainOptions
from sft_toolkit.training.processes import Ranks
from tests.conftest import ROOT
from tests.sft_toolkit.training.tiny import tiny_config

_CASES = ROOT / "tests" / "cases" / "trainer"
_SMALL = {"vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2, "max_position_embeddings": 512}
_ATTENTION = {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "head_dim": 16}
_WINDOW = {"sliding_window": 17, "layer_types": ["sliding_attention", "full_attention"]}
_GPT = {"vocab_size": 256, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 512}
_GPT_OFF = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
_EQUAL_HEADS = {"num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 96}
_MAMBA = {"vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2, "num_heads": 8, "head_dim": 16, "n_groups": 1}
_MPT = {"vocab_size": 256, "d_model": 64, "n_heads": 4, "n_layers": 2, "max_seq_len": 512}
_EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}

PACKED: dict[str, dict[str, Any]] = {
    "qwen3": {**_SMALL, **_ATTENTION},
    "qwen3_moe": {**_SMALL, **_ATTENTION, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
    "gpt_oss": {**_SMALL, **_ATTENTION, **_EXPERTS, **_WINDOW},
    "gemma2": {**_SMALL, **_ATTENTION, **_WINDOW, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 1.0},
    "gemma3_text": {**_SMALL, **_ATTENTION, **_WINDOW},
    "mistral": {**_SMALL, **_ATTENTION, "sliding_window": 17},
    "olmo3": {**_SMALL, **_ATTENTION, **_WINDOW},
    "cohere2": {**_SMALL, **_ATTENTION, **_WINDOW, "logit_scale": 0.25},
    "exaone4": {**_SMALL, **_ATTENTION, **_WINDOW},
    "granite": {**_SMALL, **_ATTENTION, "logits_scaling": 8.0},
    "nanochat": {**_SMALL, **_EQUAL_HEADS, "final_logit_softcapping": 3.0},
    "phi": {**_SMALL, **_EQUAL_HEADS, "resid_pdrop": 0.0},
    "gpt2": {**_GPT, **_GPT_OFF},
    "gptj": {**_GPT, **_GPT_OFF, "rotary_dim": 8},
    "codegen": {**_GPT, **_GPT_OFF, "rotary_dim": 8},
    "jetmoe": {**_SMALL, "num_key_value_heads": 2, "kv_channels": 16, "intermediate_size": 96, **_EXPERTS},
}
APART: dict[str, tuple[dict[str, Any], str]] = {
    "mamba2": (_MAMBA, "2 of 2 layers do not attend through transformers' attention interface"),
    "bloom": ({"vocab_size": 256, "hidden_size": 64, "n_layer": 2, "n_head": 4}, "2 of 2 layers do not attend"),
    "stablelm": ({**_SMALL, **_EQUAL_HEADS}, "boundaries"),
    "doge": ({**_SMALL, **_ATTENTION}, "attention with a mask of its own is not supported"),
    "mpt": (_MPT, r"fails on packed documents \(AttributeError\)"),
}


def config_of(family: str, options: dict[str, Any]) -> PreTrainedConfig:
    given = _CASES / f"{family}_tiny_config.json"
    config = AutoConfig.from_pretrained(given) if given.exists() else CONFIG_MAPPING[family](**options)
    for name in ("attention_dropout", "hidden_dropout"):
        if hasattr(config, name):
            setattr(config, name, 0.0)
    return config


def loaded(
    config: PreTrainedConfig, folder: Path, ranks: Ranks, *, apart: bool = False, recipe: Recipe | None = None
) -> PackedModel:
    """A checkpoint with random weights, as training loads it."""
    save_random(config, folder)
    source = ModelSource(checkpoint=folder)
    options = TrainOptions(packed=folder, output=folder, source=source, recipe=recipe or Recipe())
    return load_sharded(options, read_config(source), ranks.mesh, apart=apart)


def save_random(config: PreTrainedConfig, folder: Path) -> None:
    """Save a model with random weights, biases and sinks too."""
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("lm_head.bias", "sinks")):
                parameter.normal_()
            elif parameter.ndim > 1:
                parameter.mul_(4)
    model.save_pretrained(folder)


def reference(folder: Path, batch: Batch) -> tuple[float, dict[str, Tensor]]:
    """Loss and gradients of plain transformers, a document at a time, by its eager attention."""
    plain = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    total = 0.0
    ids, ends = batch.inputs["input_ids"], batch.inputs["cu_seq_lens_q"].tolist()
    for begin, end in pairwise(ends):
        wanted = batch.predictors[(batch.predictors >= begin) & (batch.predictors < end)] - begin
        logits = plain(input_ids=ids[:, begin:end], use_cache=False).logits[0].float()
        loss = F.cross_entropy(logits[wanted], ids[0, begin + wanted + 1], reduction="sum")
        loss.backward()
        total += loss.item()
    return total, {name: one.grad for name, one in plain.named_parameters() if one.grad is not None}


def require_reference(model: PackedModel, folder: Path) -> None:
    batch = Batch.of(isolation._probe(256))
    expected, gradients = reference(folder, batch)
    loss = model(batch)
    loss.backward()
    assert loss.item() == pytest.approx(expected, rel=1e-6)
    found = {name: one.grad.full_tensor() for name, one in model.causal_lm.named_parameters() if one.grad is not None}
    whole = torch.cat([gradient.flatten() for gradient in gradients.values()]).norm()
    difference = torch.cat([(found[name] - gradient).flatten() for name, gradient in gradients.items()]).norm()
    assert (difference / whole).item() <= 1e-5


@pytest.mark.parametrize("family", ["kolibri1", *PACKED])
def test_packed_loss_and_gradient_are_those_of_plain_transformers(family: str, tmp_path: Path, ranks: Ranks) -> None:
    model = loaded(config_of(family, PACKED.get(family, {})), tmp_path, ranks)
    assert packing_fault(model, device=ranks.device) is None
    assert head_fault(model, device=ranks.device) is None
    require_reference(model, tmp_path)


@pytest.mark.parametrize("family", ["nemotron", *APART])
def test_what_packing_would_change_trains_one_document_after_the_other(
    family: str, tmp_path: Path, ranks: Ranks
) -> None:
    options, reason = APART.get(family, ({}, "boundaries"))
    config = config_of(family, options)
    fault = packing_fault(loaded(config, tmp_path, ranks), device=ranks.device)
    assert fault is not None
    assert re.search(reason, fault)
    model = loaded(config, tmp_path, ranks, apart=True)
    assert head_fault(model, device=ranks.device) is None
    require_reference(model, tmp_path)


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize(
    ("family", "hidden"), [("phi", "bias"), ("nanochat", "final_logit_softcapping"), ("granite", "logits_scaling")]
)
def test_a_head_that_does_more_than_the_loss_knows_is_found_in_float32_and_makes_its_own_logits(
    family: str, hidden: str, bf16: bool, tmp_path: Path, ranks: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, said = Recipe(bf16=bf16), []
    model = loaded(config_of(family, PACKED[family]), tmp_path, ranks)
    assert head_fault(model, device=ranks.device) is None
    default = {"bias": None, "final_logit_softcapping": None, "logits_scaling": 1.0}[hidden]
    known = "cap" if "cap" in hidden else "bias" if hidden == "bias" else "scale"
    monkeypatch.setattr(
        "sft_toolkit.training.model.head_of", lambda causal_lm: replace(head_of(causal_lm), **{known: default})
    )
    options = TrainOptions(tmp_path, tmp_path, ModelSource(checkpoint=tmp_path), recipe)
    model = load_checked(options, read_config(options.source), ranks, said.append)
    assert model.own_head
    assert said[0].startswith(f"{family}: its head is of its own kind, at hidden states of magnitude ")
    if bf16:
        loss = model(Batch.of(isolation._probe(256))).item()
        assert loss == pytest.approx(reference(tmp_path, Batch.of(isolation._probe(256)))[0], rel=1e-2)
    else:
        require_reference(model, tmp_path)


def test_a_head_behind_layers_of_its_own_trains_by_its_own_logits(tmp_path: Path, ranks: Ranks) -> None:
    sizes = {**_SMALL, **_EQUAL_HEADS, "attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0}
    config, said = config_of("bert", {**sizes, "is_decoder": True}), []
    loaded(config, tmp_path, ranks)
    options = TrainOptions(tmp_path, tmp_path, ModelSource(checkpoint=tmp_path))
    model = load_checked(options, config, ranks, said.append)
    assert len(said) == 1 and "logits of all tokens are made" in said[0]
    require_reference(model, tmp_path)


def test_a_model_that_sees_what_it_is_to_predict_is_refused(tmp_path: Path, ranks: Ranks) -> None:
    sizes = {**_SMALL, **_EQUAL_HEADS, "attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0}
    model = loaded(config_of("bert", sizes), tmp_path, ranks, apart=True)
    with pytest.raises(ToolkitError, match="bert: a token's logits depend on the tokens after it") as refused:
        require_causal(model, device=ranks.device)
    assert "`is_decoder`" in refused.value.hint


def test_a_window_that_is_not_passed_on_is_found_out_however_long_it_is(
    tmp_path: Path, ranks: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = loaded(config_of("mistral", {**PACKED["mistral"], "sliding_window": 400}), tmp_path, ranks)
    assert packing_fault(model, device=ranks.device) is None
    for layer in model.causal_lm.model.layers:
        monkeypatch.setattr(
            layer.self_attn, "config", config_of("mistral", {**PACKED["mistral"], "sliding_window": None})
        )
        layer.self_attn.config._attn_implementation = ATTENTION
    fault = packing_fault(model, device=ranks.device)
    assert fault == "layers have a sliding window and do not pass it on to their attention"


def test_dropout_of_attention_is_refused_before_anything_is_loaded() -> None:
    with pytest.raises(ToolkitError, match=r"gpt2: dropout of attention is not supported, attn_pdrop is 0\.1"):
        require_no_dropout(GPT2Config())
    with pytest.raises(ToolkitError, match=r"granite: .* attention_dropout is 0\.2"):
        require_no_dropout(GraniteConfig(**_SMALL, **_ATTENTION, attention_dropout=0.2))
    require_no_dropout(tiny_config())


def test_a_model_that_does_not_heed_boundaries_is_found_out(tmp_path: Path, ranks: Ranks) -> None:
    def join_documents(_: object, args: tuple[Any, ...], inputs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        ends = torch.tensor([0, inputs["input_ids"].size(1)], dtype=torch.int32)
        return args, {**inputs, "cu_seq_lens_q": ends, "max_length_q": int(ends[1])}

    model = loaded(tiny_config(), tmp_path, ranks)
    model.causal_lm.model.register_forward_pre_hook(join_documents, with_kwargs=True)
    fault = packing_fault(model, device=ranks.device)
    assert fault is not None and fault.startswith("packed documents see one another: logits differ by")


def test_rounding_to_bfloat16_stays_within_what_its_kernels_are_allowed(tmp_path: Path, ranks: Ranks) -> None:
    model = loaded(tiny_config(), tmp_path, ranks, recipe=Recipe(bf16=True))
    with without_gradients(model):
        found = isolation.compared(model, Batch.of(isolation._probe(256)))
    assert 1e-4 < found < 0.02
    assert packing_fault(model, device=ranks.device, tolerance=BFLOAT16_TOLERANCE) is None
