"""FLOPs by hand, and beside what torch counts while it computes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM

from sft_toolkit.shards.packed_index import PackedIndex
from sft_toolkit.training.flops import Flops
from sft_toolkit.training.model import empty_model
from tests.sft_toolkit.training.tiny import tiny_config

# a layer: q and o 64 x 64, k and v 64 x 32, three of 64 x 128
LAYER = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128
HEAD = 256 * 64


@pytest.mark.parametrize("tied", [False, True])
def test_tokens_meet_every_matrix_but_the_lookup_and_the_head(tied: bool) -> None:
    assert Flops.of(empty_model(tiny_config(tied=tied))) == Flops(6 * 2 * LAYER, 6 * HEAD, 6 * 2 * 4 * 16)


def test_of_four_experts_a_token_meets_two() -> None:
    attention, experts, router = 2 * 64 * 64 + 2 * 64 * 32, 2 * 3 * 64 * 32, 4 * 64
    flops = Flops.of(empty_model(tiny_config("qwen3_moe")))
    assert flops.per_token == 6 * 2 * (attention + experts + router)


def test_a_sequence_is_worth_what_torch_counts_but_for_attention_above_the_diagonal() -> None:
    tokens = 64
    config = tiny_config()
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    with FlopCounterMode(display=False) as counter:
        logits = model(input_ids=torch.arange(tokens)[None], use_cache=False).logits
        logits.sum().backward()
    count = np.array([tokens])
    index = PackedIndex(count, count, count, count, count, cost=count**2, mix=None, datasets=[])
    whole_square = 3 * 2 * 4 * 4 * 16 * tokens**2
    causal = 6 * 2 * 4 * 16 * tokens * (tokens + 1)
    rotary = counter.get_total_flops() - Flops.of(model).of_sequences(index)[0] - (whole_square - causal)
    assert 0 <= rotary < 0.001 * counter.get_total_flops()
