"""Attention within documents beside softmax under an explicit mask."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.attention import varlen

from sft_toolkit.errors import ToolkitError
from sft_toolkit.training import explicit_attention
from sft_toolkit.training.attention import _flash, document_attention

BOUNDS = torch.tensor([0, 5, 6, 17, 24], dtype=torch.int32)
HEADS, GROUPS, WIDTH = 4, 2, 8


def states(seed: int = 0) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    shapes = [(1, heads, int(BOUNDS[-1]), WIDTH) for heads in (HEADS, GROUPS, GROUPS)]
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def masked(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scale: float,
    window: int | None = None,
    softcap: float | None = None,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    document = torch.bucketize(torch.arange(int(BOUNDS[-1])), BOUNDS[1:], right=True)
    allowed = (document[:, None] == document).tril()
    if window is not None:
        allowed = allowed.triu(1 - window)
    key, value = (part.repeat_interleave(HEADS // GROUPS, dim=1) for part in (key, value))
    scores = query @ key.mT * scale
    if softcap is not None:
        scores = softcap * (scores / softcap).tanh()
    weights = scores.exp().masked_fill(~allowed, 0)
    total = weights.sum(-1, keepdim=True)
    if sinks is not None:
        total = total + sinks.exp()[:, None, None]
    return (weights / total @ value).transpose(1, 2)


def test_documents_attend_causally_to_themselves_alone() -> None:
    ours, theirs = states(), states()
    found, _ = document_attention(nn.Identity(), *ours, None, scaling=0.3, cu_seq_lens_q=BOUNDS, max_length_q=11)
    expected = masked(*theirs, scale=0.3)
    torch.testing.assert_close(found, expected)
    weights = torch.randn(found.shape, dtype=torch.float64)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad)


@pytest.mark.parametrize("window", [None, 1, 4, 11, 400])
@pytest.mark.parametrize("softcap", [None, 0.5])
@pytest.mark.parametrize("sinks", [False, True])
def test_windows_caps_and_sinks_are_those_of_an_explicit_mask(
    window: int | None, softcap: float | None, sinks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explicit_attention, "_STRETCH", 3)
    ours, theirs = states(), states()
    aux = [torch.linspace(-1, 1, HEADS, dtype=torch.float64).requires_grad_() for _ in range(2)]
    features = {"sliding_window": window, "softcap": softcap, "s_aux": aux[0] if sinks else None}
    boundaries = {"cu_seq_lens_q": BOUNDS, "max_length_q": 11}
    found, _ = document_attention(nn.Identity(), *ours, None, scaling=0.3, **boundaries, **features)
    expected = masked(*theirs, scale=0.3, window=window, softcap=softcap, sinks=aux[1] if sinks else None)
    torch.testing.assert_close(found, expected)
    weights = torch.randn(found.shape, dtype=torch.float64)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    for one, other in zip([*ours, aux[0]], [*theirs, aux[1]], strict=True):
        torch.testing.assert_close(one.grad, other.grad)


@pytest.mark.parametrize(
    ("feature", "value", "reason"),
    [
        ("dropout", 0.1, "attention with dropout is not supported"),
        ("position_bias", torch.zeros(1), "attention with position_bias is not supported"),
        ("is_causal", False, "attention with both directions is not supported"),
        ("attention_mask", torch.ones(1, 1, 24, 24), "attention with a mask of its own is not supported"),
        ("cu_seq_lens_q", None, "boundaries of documents do not reach its attention"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(feature: str, value: object, reason: str) -> None:
    arguments = {"attention_mask": None, "cu_seq_lens_q": BOUNDS, "max_length_q": 11, feature: value}
    with pytest.raises(ToolkitError, match=reason):
        document_attention(nn.Identity(), *states(), **arguments)


SIGNATURE = inspect.signature(varlen.varlen_attn)


def kernel(*arguments: Any, **options: Any) -> torch.Tensor:
    """What the flash kernel of CUDA computes, and what it asks for, under the signature that torch has."""
    call = SIGNATURE.bind(*arguments, **options).arguments
    query, key, value = (call[name].transpose(0, 1)[None] for name in ("query", "key", "value"))
    assert query.size(-1) == key.size(-1) == value.size(-1)
    assert query.size(-1) % 8 == 0
    assert all(call[name] is BOUNDS for name in ("cu_seq_q", "cu_seq_k"))
    assert (call["max_q"], call["max_k"], call["window_size"][1]) == (11, 11, 0)
    assert call["enable_gqa"] is (query.size(1) != key.size(1))
    before = call["window_size"][0]
    return masked(query, key, value, call["scale"], None if before == -1 else before + 1)[0]


@pytest.mark.parametrize(("scaling", "window"), [(None, None), (0.3, None), (0.3, 4)])
@pytest.mark.parametrize(("width", "result"), [(8, 8), (24, 16), (8, 16), (6, 6), (256, 256)])
def test_heads_of_any_width_reach_the_flash_kernel_as_it_takes_them(
    width: int, result: int, scaling: float | None, window: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(varlen, "varlen_attn", kernel)
    torch.manual_seed(0)
    tokens = int(BOUNDS[-1])
    query, key = (torch.randn(1, heads, tokens, width, dtype=torch.float64) for heads in (HEADS, GROUPS))
    value = torch.randn(1, GROUPS, tokens, result, dtype=torch.float64)
    found = _flash(query, key, value, BOUNDS, 11, scaling, True, window)
    expected, _ = document_attention(
        nn.Identity(),
        query,
        key,
        value,
        None,
        scaling=scaling,
        cu_seq_lens_q=BOUNDS,
        max_length_q=11,
        sliding_window=window,
    )
    torch.testing.assert_close(found, expected)


def test_the_flash_kernel_gets_no_heads_that_are_too_wide() -> None:
    parts = [torch.zeros(1, 2, 24, 264, dtype=torch.bfloat16)] * 3
    with pytest.raises(ToolkitError, match="at most 256 numbers, not 264"):
        _flash(*parts, BOUNDS, 11, None, False, None)
