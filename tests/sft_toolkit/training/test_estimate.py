"""The estimate of memory beside what torch keeps, and what a dry run says of the way documents go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig, Qwen3Config, Qwen3MoeConfig

from sft_toolkit.training.attention import ATTENTION, register_attention
from sft_toolkit.training.batch import model_inputs
from sft_toolkit.training.estimate import _activations_per_token, estimate
from sft_toolkit.training.isolation import expected_fault
from sft_toolkit.training.options import TrainOptions
from tests.sft_toolkit.training.test_isolation import APART, PACKED, config_of
from tests.sft_toolkit.training.tiny import counting_documents

TOKENS = 256
SHAPE = {"vocab_size": 64, "hidden_size": 256, "num_hidden_layers": 1, "head_dim": 32}
HEADS = {"num_attention_heads": 8, "num_key_value_heads": 2}
EXPERTS = {"moe_intermediate_size": 96, "num_experts": 8, "num_experts_per_tok": 4}


def kept(config: PreTrainedConfig) -> float:
    """Numbers of a token that the first layer keeps for the way back."""
    register_attention()
    model = AutoModelForCausalLM.from_config(config, attn_implementation=ATTENTION)
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    seen: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    states = torch.randn(1, TOKENS, config.hidden_size, requires_grad=True)
    inputs = model_inputs(torch.zeros(TOKENS, dtype=torch.long), np.array([TOKENS], np.int32))
    turned = model.model.rotary_emb(states, inputs["position_ids"])
    bounds: dict[str, Any] = {name: one for name, one in inputs.items() if name.startswith(("cu", "max"))}
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        held = model.model.layers[0](
            states, position_ids=inputs["position_ids"], position_embeddings=turned, attention_mask=None, **bounds
        )
    del held
    return sum(seen.values()) / 4 / TOKENS


@pytest.mark.parametrize("experts", [None, "eager", "grouped_mm"])
def test_activations_are_estimated_within_a_tenth_or_so(experts: str | None) -> None:
    if experts is None:
        config: PreTrainedConfig = Qwen3Config(**SHAPE, **HEADS, intermediate_size=768)
    else:
        config = Qwen3MoeConfig(**SHAPE, **HEADS, **EXPERTS, intermediate_size=768)
        config._experts_implementation = experts
    assert 0.88 <= kept(config) / _activations_per_token(config) <= 1.05


@pytest.mark.parametrize(
    ("family", "reason"),
    [
        ("qwen3", None),
        ("gpt_oss", None),
        ("stablelm", "boundaries of documents do not reach"),
        ("bloom", "do not attend through"),
        ("mamba2", "do not attend through"),
    ],
)
def test_that_documents_will_go_one_after_the_other_is_known_before_anything_is_loaded(
    family: str, reason: str | None
) -> None:
    config = config_of(family, PACKED.get(family) or APART[family][0])
    found = expected_fault(config)
    assert (found is None) if reason is None else (found is not None and reason in found)


def test_a_dry_run_names_the_costliest_documents(options: TrainOptions) -> None:
    found = estimate(options, 1)
    longest = max(len(document.tokens) for document in counting_documents(60))
    assert len(found.longest) == 3
    assert found.longest[0][1] <= longest
    assert found.apart is None


def test_the_numbers_of_a_mixture_of_experts_by_hand() -> None:
    config = Qwen3MoeConfig(**SHAPE, **HEADS, **EXPERTS, intermediate_size=768)
    attention = 6 * 256 + 32 * (6 * 8 + 5 * 2)
    assert _activations_per_token(config) == attention + 4 * (2 * 256 + 4 * 96) + 2 * 8
