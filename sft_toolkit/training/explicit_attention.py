"""Attention of one document in plain torch, for what no kernel at hand does: soft-capped scores and attention sinks.

Queries are taken in stretches, each with the keys that it sees, and a stretch's weights are computed again on the way
back, so that memory is linear in the document's length.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

_STRETCH = 256
"""Least queries in a stretch."""


def stretches(tokens: int, window: int | None) -> Iterator[tuple[int, int, int]]:
    """Cut a document's queries: (begin, end, first key that one of them sees). Cost is linear in tokens * window."""
    size = max(_STRETCH, window or 0)
    for begin in range(0, tokens, size):
        first = 0 if window is None else max(0, begin - window + 1)
        yield begin, min(begin + size, tokens), first


def within_window(begin: int, end: int, first: int, window: int | None, device: torch.device) -> Tensor:
    """Whether queries begin … end - 1 see keys first … end - 1, their own and window - 1 before: bool[n, keys]."""
    distance = torch.arange(begin, end, device=device)[:, None] - torch.arange(first, end, device=device)
    return (distance >= 0) if window is None else (distance >= 0) & (distance < window)


def explicit_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scaling: float | None,
    window: int | None,
    softcap: float | None,
    sinks: Tensor | None,
) -> Tensor:
    """Causal attention of one document: [1, heads, n, D].

    query: [1, heads, n, D]; key, value: [1, groups, n, D]; sinks: [heads], scores of a key whose value is zero
    """
    scale = query.size(-1) ** -0.5 if scaling is None else scaling
    repeats = query.size(1) // key.size(1)
    parts = []
    for begin, end, first in stretches(query.size(2), window):
        seen = within_window(begin, end, first, window, query.device)
        states = query[:, :, begin:end], key[:, :, first:end], value[:, :, first:end]
        parts.append(checkpoint(_stretch, *states, seen, scale, repeats, softcap, sinks, use_reentrant=False))
    return torch.cat(parts, dim=2)


def _stretch(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    seen: Tensor,
    scale: float,
    repeats: int,
    softcap: float | None,
    sinks: Tensor | None,
) -> Tensor:
    key, value = (states.repeat_interleave(repeats, dim=1) for states in (key, value))
    scores = (query @ key.mT).to(torch.promote_types(query.dtype, torch.float32)) * scale
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores.masked_fill(~seen, -torch.inf)
    if sinks is not None:
        column = sinks.to(scores.dtype).reshape(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, column], dim=-1)
    weights = scores.softmax(-1)[..., : key.size(2)]
    return weights.to(value.dtype) @ value
