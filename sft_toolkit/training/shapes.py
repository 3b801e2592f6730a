"""What a configuration says about the sizes of a model's layers, whatever it calls them, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_ATTENDING = frozenset({"full_attention", "sliding_attention", "chunked_attention", "attention", "hybrid"})
"""Kinds of layers whose work grows with pairs of tokens, unlike that of recurrent, linear and convolutional ones."""
_WIDE_KEYS = ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")


@dataclass(frozen=True, slots=True)
class LayerAttention:
    """heads * width numbers are multiplied for a pair of tokens; window: keys that a query sees, None for all"""

    heads: int
    width: float
    window: int | None


def option(config: Any, name: str, default: Any = None) -> Any:
    """A value, `default` where there is none or null; where layers differ, what the first one has."""
    try:
        found = getattr(config, name, None)
    except RuntimeError:  # transformers, for what its layers have of different sizes
        found = getattr(config.per_layer_config[0], name, None)
    return default if found is None else found


def size(config: Any, name: str, default: float = 0) -> float:
    """A number; the mean of a list that has one for each layer."""
    return float(np.mean(option(config, name, default)))


def attention_of_layers(config: Any, layers: int) -> list[LayerAttention]:
    """Of those layers, out of `layers`, that attend to pairs of tokens."""
    kinds = option(config, "layer_types") or ["full_attention"] * layers
    window = option(config, "sliding_window") if option(config, "use_sliding_window", True) else None
    every_layer = not option(config, "layer_types")
    found = []
    for number, kind in enumerate(kinds):
        if kind not in _ATTENDING or not option(config, "num_attention_heads"):
            continue
        own = config.per_layer_config[number] if getattr(config, "is_heterogeneous", False) else config
        narrow = window if every_layer or kind == "sliding_attention" else None
        if kind == "chunked_attention":
            narrow = option(config, "attention_chunk_size")
        found.append(LayerAttention(int(option(own, "num_attention_heads")), head_width(own), narrow))
    return found


def head_width(config: Any) -> float:
    """Of an attention head; the mean of the two where queries and keys are wider than values (latent attention)."""
    if all(option(config, name) for name in _WIDE_KEYS):
        return sum(option(config, name) for name in _WIDE_KEYS) / 2
    return option(config, "head_dim") or option(config, "hidden_size") / option(config, "num_attention_heads", 1)
