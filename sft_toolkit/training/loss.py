"""Cross entropy of trained tokens alone, in chunks: the logits of a 262,144-token sequence would take 92 GB.

Gradients are made on the way forward, where each chunk's logits are at hand: for a token with target y,

    d loss / d logits = softmax(logits) - onehot(y)

and no logits outlive their chunk. Loss and weight gradient are summed in float32 or better, whatever the model's type.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

LOGITS_PER_CHUNK = 1 << 27


def summed_cross_entropy(
    hidden: Tensor, weight: Tensor, predictors: Tensor, targets: Tensor, logits_per_chunk: int = LOGITS_PER_CHUNK
) -> Tensor:
    """Sum over n trained tokens of -log p(target), in nats: float64 scalar; 0 where n = 0.

    hidden: [T, H]; weight: [V, H], of the output head; predictors: int64[n], distinct places in `hidden` that predict;
    targets: int64[n], the tokens that follow them
    """
    learning = torch.is_grad_enabled() and (hidden.requires_grad or weight.requires_grad)
    return _SummedCrossEntropy.apply(hidden, weight, predictors, targets, logits_per_chunk, learning)


class _SummedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        predictors: Tensor,
        targets: Tensor,
        logits_per_chunk: int,
        learning: bool,
    ) -> Tensor:
        total = torch.zeros((), dtype=torch.float64, device=hidden.device)
        if learning:
            hidden_grad = torch.zeros_like(hidden)
            weight_grad = torch.zeros_like(weight, dtype=torch.float32)
        rows = max(1, logits_per_chunk // len(weight))
        for places, wanted in zip(predictors.split(rows), targets.split(rows), strict=True):
            states = hidden[places]
            logits = (states @ weight.T).float()
            log_sum = logits.logsumexp(dim=1, keepdim=True)
            total += (log_sum - logits.gather(1, wanted[:, None])).sum(dtype=torch.float64)
            if learning:
                logits.sub_(log_sum).exp_().scatter_add_(1, wanted[:, None], -torch.ones_like(log_sum))
                logits_grad = logits.to(hidden.dtype)
                hidden_grad[places] = logits_grad @ weight
                weight_grad += logits_grad.T @ states
        if learning:
            ctx.save_for_backward(hidden_grad, weight_grad)
            ctx.weight_dtype = weight.dtype
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, None, None, None, None]:
        hidden_grad, weight_grad = ctx.saved_tensors
        scale = upstream.float()[None]  # one dimension, so that products are float32's: bfloat16 has 1 / N to 0.4%
        return hidden_grad.mul_(scale), weight_grad.mul_(scale).to(ctx.weight_dtype), None, None, None, None
