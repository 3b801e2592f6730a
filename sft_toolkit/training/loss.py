"""Cross entropy of trained tokens alone, in chunks: the logits of a 262,144-token sequence would take 92 GB.

Gradients are made on the way forward, where each chunk's logits are at hand: for a token with target y,

    d loss / d logits = softmax(logits) - onehot(y)

and no logits outlive their chunk. Where the head caps its logits, l = c tanh(z / c), d l / d z = 1 - (l / c)^2.
Loss and weight gradient are summed in float32 or better, whatever the model's type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

LOGITS_PER_CHUNK = 1 << 27


@dataclass(frozen=True, slots=True)
class Head:
    """An output head: logits z = scale (W h + b) of hidden states h, and where there is a cap c, c tanh(z / c).

    weight: [V, H]; bias: [V]
    """

    weight: Tensor
    bias: Tensor | None = None
    scale: float = 1.0
    cap: float | None = None

    def logits(self, states: Tensor) -> Tensor:
        """float32[n, V]; states: [n, H], of the weight's type."""
        logits = torch.nn.functional.linear(states, self.weight, self.bias).float()
        if self.scale != 1:
            logits = logits * self.scale
        return logits if self.cap is None else self.cap * torch.tanh(logits / self.cap)


def summed_cross_entropy(
    hidden: Tensor, head: Head, predictors: Tensor, targets: Tensor, logits_per_chunk: int = LOGITS_PER_CHUNK
) -> Tensor:
    """Sum over n trained tokens of -log p(target), in nats: float64 scalar; 0 where n = 0.

    hidden: [T, H]; predictors: int64[n], distinct places in `hidden` that predict; targets: int64[n], the tokens that
    follow them
    """
    learning = torch.is_grad_enabled() and (hidden.requires_grad or head.weight.requires_grad)
    shape = head.scale, head.cap, logits_per_chunk, learning
    return _SummedCrossEntropy.apply(hidden, head.weight, head.bias, predictors, targets, *shape)


class _SummedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        predictors: Tensor,
        targets: Tensor,
        scale: float,
        cap: float | None,
        logits_per_chunk: int,
        learning: bool,
    ) -> Tensor:
        head = Head(weight, bias, scale, cap)
        total = torch.zeros((), dtype=torch.float64, device=hidden.device)
        if learning:
            hidden_grad = torch.zeros_like(hidden)
            weight_grad = torch.zeros_like(weight, dtype=torch.float32)
            bias_grad = None if bias is None else torch.zeros_like(bias, dtype=torch.float32)
        rows = max(1, logits_per_chunk // len(weight))
        for places, wanted in zip(predictors.split(rows), targets.split(rows), strict=True):
            states = hidden[places]
            logits = head.logits(states)
            log_sum = logits.logsumexp(dim=1, keepdim=True)
            total += (log_sum - logits.gather(1, wanted[:, None])).sum(dtype=torch.float64)
            if learning:
                slope = None if cap is None else (1 - (logits / cap) ** 2)
                logits.sub_(log_sum).exp_().scatter_add_(1, wanted[:, None], -torch.ones_like(log_sum))
                if slope is not None:
                    logits.mul_(slope)
                if scale != 1:
                    logits.mul_(scale)
                logits_grad = logits.to(hidden.dtype)
                hidden_grad[places] = logits_grad @ weight
                weight_grad += logits_grad.T @ states
                if bias_grad is not None:
                    bias_grad += logits.sum(dim=0)
        if learning:
            ctx.save_for_backward(hidden_grad, weight_grad, bias_grad)
            ctx.weight_dtype = weight.dtype
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        hidden_grad, weight_grad, bias_grad = ctx.saved_tensors
        factor = upstream.float()[None]  # one dimension, so that products are float32's: bfloat16 has 1 / N to 0.4%
        return (
            hidden_grad.mul_(factor),
            weight_grad.mul_(factor).to(ctx.weight_dtype),
            None if bias_grad is None else bias_grad.mul_(factor).to(ctx.weight_dtype),
            *(None,) * 6,
        )
