"""What a training step must compute, exactly: causal attention within documents, the head for trained tokens alone.

For a sequence of T tokens in documents of lengths d, with n trained tokens, forward pass and twice that backward:

    3 * ( 2 P T  +  2 V H n  +  sum over layers of 4 A * pairs )

P: parameters of matrices that a token meets (of a mixture of experts, those of its k experts); V H: the output head;
A: a layer's attention heads * their width; pairs: queries and keys that see one another, of a document
d (d + 1) / 2, and where a window w is shorter, w (w + 1) / 2 + (d - w) w. Without windows twice the pairs are C + T, C
being the cost of the packed index. No padding and nothing recomputed counts, so that utilisation is of work that the
loss needs.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from sft_toolkit.training.model import layers_of, text_config
from sft_toolkit.training.sequences import PackedFolder
from sft_toolkit.training.shapes import attention_of_layers, option

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
    """FLOPs by what they grow with: tokens, trained tokens, and twice the pairs (see above) by window (None: all)."""

    per_token: float
    per_trained_token: float
    per_pair: dict[int | None, float]

    @classmethod
    def of(cls, causal_lm: nn.Module) -> Flops:
        """Count a causal LM's, parameters may lie on the meta device or be sharded."""
        config = text_config(causal_lm.config)
        head = causal_lm.get_output_embeddings().weight
        lookup = causal_lm.get_input_embeddings().weight
        matrices = sum(_met(parameter, config) for parameter in causal_lm.parameters() if parameter.ndim >= 2)
        per_pair: dict[int | None, float] = defaultdict(float)
        for layer in attention_of_layers(config, len(layers_of(causal_lm))):
            per_pair[layer.window] += 6 * layer.heads * layer.width
        return cls(
            per_token=6 * (matrices - lookup.numel() - (head.numel() if head is not lookup else 0)),
            per_trained_token=6 * head.numel(),
            per_pair=per_pair,
        )

    def of_sequences(self, packed: PackedFolder) -> NDArray[np.float64]:
        """FLOPs of each packed sequence: float64[n]."""
        index = packed.index
        tokens, trained = index.tokens.astype(np.float64), index.loss_tokens.astype(np.float64)
        found = self.per_token * tokens + self.per_trained_token * trained
        for window, work in self.per_pair.items():
            found += work * (packed.pairs_within(window) if window else index.cost + tokens)
        return found


def _met(parameter: nn.Parameter, config: Any) -> float:
    """Elements that one token meets: all of a matrix, k in E of stacked experts [E, …]."""
    if parameter.ndim < 3:
        return parameter.numel()
    return parameter.numel() * option(config, "num_experts_per_tok", len(parameter)) / len(parameter)


def peak_flops(device: torch.device) -> float | None:
    """What the device could do in bfloat16, FLOP/s; None where it is not known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for model, peak in _PEAK_BF16.items() if model in name), None)
