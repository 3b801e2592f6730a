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
    return _SummedCrossEntropy.apply(hidden, weight, predictors, targets, logits_per_chunk)


class _SummedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, predictors: Tensor, targets: Tensor, logits_per_chunk: int
    ) -> Tensor:
        total = torch.zeros((), dtype=torch.float64, device=hidden.device)
        training = any(ctx.needs_input_grad)
        if training:
            hidden_grad = torch.zeros_like(hidden)
            weight_grad = torch.zeros_like(weight, dtype=torch.float32)
        rows = max(1, logits_per_chunk // len(weight))
        for places, wanted in zip(predictors.split(rows), targets.split(rows), strict=True):
            states = hidden[places]
            logits = (states @ weight.T).float()
            log_sum = logits.logsumexp(dim=1, keepdim=True)
            total += (log_sum - logits.gather(1, wanted[:, None])).sum(dtype=torch.float64)
            if training:
                logits.sub_(log_sum).exp_().scatter_add_(1, wanted[:, None], -torch.ones_like(log_sum))
                logits_grad = logits.to(hidden.dtype)
                hidden_grad[places] = logits_grad @ weight
                weight_grad += logits_grad.T @ states
        if training:
            ctx.save_for_backward(hidden_grad, weight_grad)
            ctx.weight_dtype = weight.dtype
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        hidden_grad, weight_grad = ctx.saved_tensors
        scaled = weight_grad.mul_(upstream).to(ctx.weight_dtype)
        return hidden_grad * upstream.to(hidden_grad.dtype), scaled, None, None, None
