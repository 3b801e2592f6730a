"""FLOPs by hand, and beside what torch counts while it computes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM, DeepseekV3Config

from sft_toolkit.shards.packed_index import PackedIndex
from sft_toolkit.training.flops import Flops, peak_flops
from sft_toolkit.training.model import empty_model
from sft_toolkit.training.sequences import PackedFolder
from tests.sft_toolkit.training.tiny import tiny_config

# a layer: q and o 64 x 64, k and v 64 x 32, three of 64 x 128
LAYER = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128
HEAD = 256 * 64


@pytest.mark.parametrize("tied", [False, True])
def test_tokens_meet_every_matrix_but_the_lookup_and_the_head(tied: bool) -> None:
    assert Flops.of(empty_model(tiny_config(tied=tied))) == Flops(6 * 2 * LAYER, 6 * HEAD, {None: 6 * 2 * 4 * 16})


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
    packed = SimpleNamespace(
        index=PackedIndex(count, count, count, count, count, cost=count**2, shares=None, datasets=[])
    )
    whole_square = 3 * 2 * 4 * 4 * 16 * tokens**2
    causal = 6 * 2 * 4 * 16 * tokens * (tokens + 1)
    rotary = counter.get_total_flops() - Flops.of(model).of_sequences(packed)[0] - (whole_square - causal)
    assert 0 <= rotary < 0.001 * counter.get_total_flops()


def test_latent_attention_has_the_width_of_its_scores_and_that_of_its_values() -> None:
    widths = {"qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 12, "q_lora_rank": 16, "kv_lora_rank": 16}
    config = DeepseekV3Config(vocab_size=256, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, **widths)
    assert Flops.of(empty_model(config)).per_pair == {None: 3 * 3 * 4 * (16 + 8 + 12)}


def test_windows_count_the_pairs_within_them(packed: Path) -> None:
    config = AutoConfig.for_model(
        "gemma3_text",
        num_hidden_layers=3,
        num_attention_heads=4,
        head_dim=16,
        hidden_size=64,
        vocab_size=256,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"],
        sliding_window=17,
    )
    flops = Flops.of(empty_model(config))
    assert flops.per_pair == {17: 6 * 2 * 4 * 16, None: 6 * 4 * 16}
    folder = PackedFolder(packed)
    pairs = {
        window: [
            sum(
                min(place + 1, window or place + 1)
                for length in folder.sequence(number).lengths
                for place in range(length)
            )
            for number in range(len(folder))
        ]
        for window in flops.per_pair
    }
    tokens, trained = folder.index.tokens.astype(float), folder.index.loss_tokens.astype(float)
    expected = flops.per_token * tokens + flops.per_trained_token * trained
    expected = expected + 2 * sum(flops.per_pair[window] * np.array(pairs[window]) for window in pairs)
    np.testing.assert_allclose(flops.of_sequences(folder), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H200", 989e12),
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA GH200 480GB", 989e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA B200", 2.25e15),
        ("NVIDIA GB200", 2.5e15),
        ("NVIDIA H20", None),
    ],
)
def test_the_peak_is_that_of_the_device_or_not_known(
    name: str, peak: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: name)
    assert peak_flops(torch.device("cuda")) == peak
    assert peak_flops(torch.device("cpu")) is None
