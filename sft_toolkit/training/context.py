"""Context parallelism: ranks share a sequence that is too long for one of them.

Each of c ranks holds a c-th of the tokens, so that all but attention is computed where its tokens lie. For attention
they change sides: an all-to-all gives each rank all tokens of a c-th of the heads, documents attend as on one rank
(`attention`), and another all-to-all gives each rank its tokens back (DeepSpeed-Ulysses, arXiv 2309.14509). Beside a
ring of keys and values this needs as many heads as ranks, and in turn keeps one kernel for documents, windows and sinks
alike, and no rank waits for the one whose tokens see most.
"""

from __future__ import annotations

from math import lcm
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from transformers import AttentionInterface

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.training.attention import document_attention
from sft_toolkit.training.batch import Batch
from sft_toolkit.training.model import PackedModel, without_gradients

SHARED_ATTENTION = "kolibri_shared_documents"
_TOLERANCE = 1e-4
_HINT = "use `context=1`, more ranks and `activation_checkpointing=True`"


def share_sequences(model: PackedModel, group: dist.ProcessGroup) -> None:
    """From now on `model` takes parts of sequences (`Batch.part`); collective.

    Raises UsageError where its heads cannot be shared out, ToolkitError where it would not come to the same loss.
    """

    def shared_attention(module: nn.Module, *states: Any, **features: Any) -> tuple[Tensor, None]:
        return _attention(group, module, *states, **features)

    AttentionInterface.register(SHARED_ATTENTION, shared_attention)
    model.causal_lm.set_attn_implementation(SHARED_ATTENTION)


def require_same_when_shared(model: PackedModel, batch: Batch, group: dist.ProcessGroup) -> None:
    """Switch a model that computes in float32 to parts, and compare its loss with that of whole sequences; collective.

    Raises ToolkitError where they differ: where something but attention reads other tokens, or heads are too few.
    """
    kind = model.causal_lm.config.model_type
    if model.apart:
        raise ToolkitError(f"{kind}: goes through one document after the other, which ranks cannot share", _HINT)
    with without_gradients(model):
        whole = model(batch).item()
        share_sequences(model, group)
        shared = loss_of_parts(model, batch, group).item()
    if not abs(shared - whole) <= _TOLERANCE * abs(whole):
        raise ToolkitError(f"{kind}: has another loss, {shared:.6g} and not {whole:.6g}, where ranks share it", _HINT)


def loss_of_parts(model: PackedModel, batch: Batch, group: dist.ProcessGroup | None) -> Tensor:
    """The sum of a whole batch's losses, of which each rank computes its part; None: there is one rank."""
    if group is None:
        return model(batch)
    loss = model(batch.part(dist.get_rank(group), dist.get_world_size(group))).detach()
    dist.all_reduce(loss, group=group)
    return loss


def _attention(
    group: dist.ProcessGroup,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    s_aux: Tensor | None = None,
    **features: Any,
) -> tuple[Tensor, None]:
    """As `document_attention`, of this rank's tokens; bounds are those of whole sequences."""
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    heads, groups = query.size(1), key.size(1)
    if heads % ranks:
        raise UsageError(f"`context` {ranks}: does not divide the model's {heads} attention heads")
    repeats = lcm(groups, ranks) // groups if heads % lcm(groups, ranks) == 0 else heads // groups
    key, value = (states.repeat_interleave(repeats, dim=1) for states in (key, value))
    query, key, value = (_tokens_for_heads(states, group) for states in (query, key, value))
    if s_aux is not None:
        s_aux = s_aux.chunk(ranks)[rank]
    found, _ = document_attention(module, query, key, value, attention_mask, s_aux=s_aux, **features)
    return _heads_for_tokens(found, group), None


def _tokens_for_heads(states: Tensor, group: dist.ProcessGroup) -> Tensor:
    """[1, heads, T / c, D] of this rank's tokens to [1, heads / c, T, D] of this rank's heads."""
    ranks = dist.get_world_size(group)
    parts = _Exchanged.apply(states[0].unflatten(0, (ranks, -1)), group)  # [c, heads / c, T / c, D]
    return parts.transpose(0, 1).flatten(1, 2)[None]


def _heads_for_tokens(states: Tensor, group: dist.ProcessGroup) -> Tensor:
    """[1, T, heads / c, D] of this rank's heads to [1, T / c, heads, D] of this rank's tokens."""
    ranks = dist.get_world_size(group)
    parts = _Exchanged.apply(states[0].unflatten(0, (ranks, -1)), group)  # [c, T / c, heads / c, D]
    return parts.transpose(0, 1).flatten(1, 2)[None]


class _Exchanged(torch.autograd.Function):
    """Part i of rank j becomes part j of rank i: [c, …]; gradients go the same way."""

    @staticmethod
    def forward(ctx: Any, parts: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        return _exchanged(parts, group)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        return _exchanged(upstream, ctx.group), None


def _exchanged(parts: Tensor, group: dist.ProcessGroup) -> Tensor:
    given = parts.contiguous()
    found = torch.empty_like(given)
    # as bytes: gloo knows no bfloat16
    dist.all_to_all_single(found.view(torch.uint8), given.view(torch.uint8), group=group)
    return found
