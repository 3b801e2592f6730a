"""Attention within each document of a packed sequence: linear memory, and no mask to be left out.

A boolean mask over 262,144 tokens would be 69 GB. On CUDA all documents go through one variable-length flash kernel; on
CPU, and in float32, through one causal call a document, or where a window is shorter than the document, one call a
stretch of queries. Soft caps and attention sinks are computed in plain torch (`explicit_attention`), on either.
transformers passes `cu_seq_lens_q` down to the function as it is given to the model, and builds no mask for an
implementation whose name it does not know.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface

from sft_toolkit.errors import ToolkitError
from sft_toolkit.training.explicit_attention import explicit_attention, stretches, within_window

ATTENTION = "kolibri_documents"
_UNSUPPORTED = ("position_bias",)
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
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **features: Any,
) -> tuple[Tensor, None]:
    """Causal attention within documents, as transformers calls it.

    query: [1, heads, T, D]; key, value: [1, groups, T, D]; cu_seq_lens_q: int32[documents + 1];
    sliding_window: keys that a query sees, its own included; softcap: scores s become softcap * tanh(s / softcap);
    s_aux: [heads], the score of a key without value (attention sink)
    Returns [1, T, heads, D]. Raises ToolkitError where the model needs what this cannot do, without boundaries, and
    with a mask, which it would have to ignore.
    """
    bounds = {"cu_seq_lens_q": cu_seq_lens_q, "max_length_q": max_length_q}
    require_supported(module, query, attention_mask, dropout=dropout, **bounds, **features)
    assert cu_seq_lens_q is not None and max_length_q is not None
    longest = int(max_length_q)
    window = sliding_window if sliding_window is not None and sliding_window < longest else None
    grouped = query.size(1) != key.size(1)
    if softcap is None and s_aux is None and query.is_cuda and query.dtype != torch.float32:
        return _flash(query, key, value, cu_seq_lens_q, longest, scaling, grouped, window), None
    documents = []
    for begin, end in pairwise(cu_seq_lens_q.tolist()):
        states = query[:, :, begin:end], key[:, :, begin:end], value[:, :, begin:end]
        if softcap is None and s_aux is None:
            documents.append(_one_document(*states, scaling, grouped, window))
        else:
            documents.append(explicit_attention(*states, scaling, window, softcap, s_aux))
    return torch.cat(documents, dim=2).transpose(1, 2).contiguous(), None


def require_supported(
    module: nn.Module,
    query: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    cu_seq_lens_q: Tensor | None = None,
    max_length_q: int | None = None,
    **features: Any,
) -> None:
    """Raise ToolkitError for what `document_attention` would have to ignore; no value of a tensor is read."""
    refused = [name for name in _UNSUPPORTED if features.get(name) is not None] + ["dropout"] * (dropout > 0)
    if wanted := refused + ["both directions"] * (features.get("is_causal") is False):
        raise ToolkitError(f"{type(module).__name__}: attention with {wanted[0]} is not supported")
    if attention_mask is not None:
        raise ToolkitError(f"{type(module).__name__}: attention with a mask of its own is not supported")
    if cu_seq_lens_q is None or max_length_q is None or len(query) != 1:
        raise ToolkitError(
            f"{type(module).__name__}: boundaries of documents do not reach its attention",
            "give the model one row, cu_seq_lens_q and max_length_q",
        )


def _one_document(
    query: Tensor, key: Tensor, value: Tensor, scaling: float | None, grouped: bool, window: int | None
) -> Tensor:
    """[1, heads, n, D] of one document's states."""
    tokens = query.size(2)
    if window is None or window >= tokens:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scaling, enable_gqa=grouped)
    parts = [
        F.scaled_dot_product_attention(
            query[:, :, begin:end],
            key[:, :, first:end],
            value[:, :, first:end],
            attn_mask=within_window(begin, end, first, window, query.device),
            scale=scaling,
            enable_gqa=grouped,
        )
        for begin, end, first in stretches(tokens, window)
    ]
    return torch.cat(parts, dim=2)


def _flash(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bounds: Tensor,
    longest: int,
    scaling: float | None,
    grouped: bool,
    window: int | None,
) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    own, result = query.size(-1), value.size(-1)
    width = -(-max(own, result) // _WIDTH_STEP) * _WIDTH_STEP
    if width > _GREATEST_WIDTH:
        raise ToolkitError(
            f"attention on CUDA takes heads of at most {_GREATEST_WIDTH} numbers, not {max(own, result)}"
        )
    tokens_first = (_widened(states[0].transpose(0, 1), width) for states in (query, key, value))
    scale = own**-0.5 if scaling is None else scaling
    seen = (-1 if window is None else window - 1, 0)  # keys before and after a query's own
    lengths = bounds, bounds, longest, longest
    out = varlen_attn(*tokens_first, *lengths, scale=scale, window_size=seen, enable_gqa=grouped)
    return out[None, ..., :result]


def _widened(states: Tensor, width: int) -> Tensor:
    """Zeros after each head, which add nothing to scores and come out as zeros: [T, heads, D] to [T, heads, width]."""
    lacking = width - states.size(-1)
    return F.pad(states, (0, lacking)) if lacking else states
