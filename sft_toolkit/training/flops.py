"""What a training step must compute, exactly: causal attention within documents, the head for trained tokens alone.

For a sequence of T tokens in documents of lengths d, with n trained tokens, forward pass and twice that backward:

    3 * ( 2 P T  +  2 V H n  +  L * 4 A * sum over d of d (d + 1) / 2 )

P: parameters of matrices that a token meets (of a mixture of experts, those of its k experts); V H: the output head;
L: layers; A: attention heads * their width. sum d (d + 1) = C + T, C being the cost of the packed index. No padding and
nothing recomputed counts, so that utilisation is of work that the loss needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from sft_toolkit.shards.packed_index import PackedIndex

_PEAK_BF16 = {
    "GB200": 2.5e15,
    "B200": 2.25e15,
    "H200 NVL": 835e12,
    "H200": 989e12,
    "H100 NVL": 835e12,
    "H100 PCIe": 756e12,
    "H100": 989e12,
    "A100": 312e12,
}
"""FLOP/s of dense bfloat16 matrix products, from the maker's data sheets; the first that a device's name contains."""


@dataclass(frozen=True, slots=True)
class Flops:
    """FLOPs by what they grow with: tokens, trained tokens, and C + T (see above)."""

    per_token: float
    per_trained_token: float
    per_pair: float

    @classmethod
    def of(cls, causal_lm: nn.Module) -> Flops:
        """Count a causal LM's, parameters may lie on the meta device or be sharded."""
        config: Any = causal_lm.config
        head = causal_lm.get_output_embeddings().weight
        lookup = causal_lm.get_input_embeddings().weight
        matrices = sum(_met(parameter, config) for parameter in causal_lm.parameters() if parameter.ndim >= 2)
        return cls(
            per_token=6 * (matrices - lookup.numel() - (head.numel() if head is not lookup else 0)),
            per_trained_token=6 * head.numel(),
            per_pair=6 * config.num_hidden_layers * config.num_attention_heads * _head_width(config),
        )

    def of_sequences(self, index: PackedIndex) -> NDArray[np.float64]:
        """FLOPs of each packed sequence: float64[n]."""
        tokens = index.tokens.astype(np.float64)
        return (
            self.per_token * tokens + self.per_trained_token * index.loss_tokens + self.per_pair * (index.cost + tokens)
        )


def _head_width(config: Any) -> float:
    """Of an attention head; the mean of the two where queries and keys are wider than values (latent attention)."""
    if hasattr(config, "qk_nope_head_dim"):
        return (config.qk_nope_head_dim + config.qk_rope_head_dim + config.v_head_dim) / 2
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def _met(parameter: nn.Parameter, config: Any) -> float:
    """Elements that one token meets: all of a matrix, k in E of stacked experts [E, …]."""
    if parameter.ndim < 3:
        return parameter.numel()
    return parameter.numel() * getattr(config, "num_experts_per_tok", len(parameter)) / len(parameter)


def peak_flops(device: torch.device) -> float | None:
    """What the device could do in bfloat16, FLOP/s; None where it is not known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for model, peak in _PEAK_BF16.items() if model in name), None)
