"""Attention within each document of a packed sequence: linear memory, and no mask to be left out.

A boolean mask over 262,144 tokens would be 69 GB. On CUDA all documents go through one variable-length flash kernel, on
CPU through one causal call a document. transformers passes `cu_seq_lens_q` down to the function as it is given to the
model, and builds no mask for an implementation whose name it does not know.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface

from sft_toolkit.errors import ToolkitError

ATTENTION = "kolibri_documents"
_UNSUPPORTED = ("sliding_window", "softcap", "s_aux")
_WIDTH_STEP, _GREATEST_WIDTH = 8, 256
"""Widths of heads that the flash kernel takes: one for queries, keys and values, a multiple, and at most that."""


def register_attention() -> None:
    """Make `attn_implementation="kolibri_documents"` known to transformers."""
    AttentionInterface.register(ATTENTION, document_attention)


def document_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    cu_seq_lens_q: Tensor | None = None,
    max_length_q: int | None = None,
    **features: Any,
) -> tuple[Tensor, None]:
    """Causal attention within documents, as transformers calls it.

    query: [1, heads, T, D]; key, value: [1, groups, T, D]; cu_seq_lens_q: int32[documents + 1]
    Returns [1, T, heads, D]. Raises ToolkitError where the model needs what this cannot do, ValueError without
    boundaries or with a mask, which it would have to ignore.
    """
    if wanted := [name for name in _UNSUPPORTED if features.get(name) is not None] + ["dropout"] * (dropout > 0):
        raise ToolkitError(f"{type(module).__name__}: attention with {wanted[0]} is not supported")
    if cu_seq_lens_q is None or max_length_q is None or attention_mask is not None or len(query) != 1:
        raise ValueError("pass one row, cu_seq_lens_q and max_length_q, and no attention_mask")
    grouped = query.size(1) != key.size(1)
    if query.is_cuda:
        return _flash(query, key, value, cu_seq_lens_q, int(max_length_q), scaling, grouped), None
    bounds = cu_seq_lens_q.tolist()
    documents = [
        F.scaled_dot_product_attention(
            query[:, :, begin:end],
            key[:, :, begin:end],
            value[:, :, begin:end],
            is_causal=True,
            scale=scaling,
            enable_gqa=grouped,
        )
        for begin, end in pairwise(bounds)
    ]
    return torch.cat(documents, dim=2).transpose(1, 2), None


def _flash(
    query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, longest: int, scaling: float | None, grouped: bool
) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    if query.dtype == torch.float32:
        raise ToolkitError("attention on CUDA does not compute in float32", "use --bf16")
    own, result = query.size(-1), value.size(-1)
    width = -(-max(own, result) // _WIDTH_STEP) * _WIDTH_STEP
    if width > _GREATEST_WIDTH:
        raise ToolkitError(
            f"attention on CUDA takes heads of at most {_GREATEST_WIDTH} numbers, not {max(own, result)}"
        )
    tokens_first = (_widened(states[0].transpose(0, 1), width) for states in (query, key, value))
    scale = own**-0.5 if scaling is None else scaling
    out = varlen_attn(
        *tokens_first, bounds, bounds, longest, longest, scale=scale, window_size=(-1, 0), enable_gqa=grouped
    )
    return out[None, ..., :result]


def _widened(states: Tensor, width: int) -> Tensor:
    """Zeros after each head, which add nothing to scores and come out as zeros: [T, heads, D] to [T, heads, width]."""
    lacking = width - states.size(-1)
    return F.pad(states, (0, lacking)) if lacking else states
