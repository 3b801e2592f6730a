"""Attention within documents beside softmax under an explicit mask."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.attention import varlen

from sft_toolkit.errors import ToolkitError
from sft_toolkit.training.attention import _flash, document_attention

BOUNDS = torch.tensor([0, 5, 6, 17, 24], dtype=torch.int32)
HEADS, GROUPS, WIDTH = 4, 2, 8


def states(seed: int = 0) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    shapes = [(1, heads, int(BOUNDS[-1]), WIDTH) for heads in (HEADS, GROUPS, GROUPS)]
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def masked(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float) -> torch.Tensor:
    document = torch.bucketize(torch.arange(int(BOUNDS[-1])), BOUNDS[1:], right=True)
    allowed = (document[:, None] == document).tril()
    key, value = (part.repeat_interleave(HEADS // GROUPS, dim=1) for part in (key, value))
    scores = (query @ key.mT * scale).masked_fill(~allowed, float("-inf"))
    return (scores.softmax(-1) @ value).transpose(1, 2)


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


@pytest.mark.parametrize(
    ("feature", "value"), [("sliding_window", 16), ("softcap", 50.0), ("s_aux", torch.zeros(4)), ("dropout", 0.1)]
)
def test_what_it_cannot_do_is_refused_by_name(feature: str, value: object) -> None:
    arguments = {"cu_seq_lens_q": BOUNDS, "max_length_q": 11, feature: value}
    with pytest.raises(ToolkitError, match=f"attention with {feature} is not supported"):
        document_attention(nn.Identity(), *states(), None, **arguments)


def test_it_runs_neither_without_boundaries_nor_under_a_mask() -> None:
    with pytest.raises(ValueError, match="cu_seq_lens_q"):
        document_attention(nn.Identity(), *states(), None)
    with pytest.raises(ValueError, match="no attention_mask"):
        mask = torch.ones(1, 1, 24, 24)
        document_attention(nn.Identity(), *states(), mask, cu_seq_lens_q=BOUNDS, max_length_q=11)


SIGNATURE = inspect.signature(varlen.varlen_attn)


def kernel(*arguments: Any, **options: Any) -> torch.Tensor:
    """What the flash kernel of CUDA computes, and what it asks for, under the signature that torch has."""
    call = SIGNATURE.bind(*arguments, **options).arguments
    query, key, value = (call[name].transpose(0, 1)[None] for name in ("query", "key", "value"))
    assert query.size(-1) == key.size(-1) == value.size(-1)
    assert query.size(-1) % 8 == 0
    assert all(call[name] is BOUNDS for name in ("cu_seq_q", "cu_seq_k"))
    assert (call["max_q"], call["max_k"], call["window_size"]) == (11, 11, (-1, 0))
    assert call["enable_gqa"] is (query.size(1) != key.size(1))
    return masked(query, key, value, call["scale"])[0]


@pytest.mark.parametrize("scaling", [None, 0.3])
@pytest.mark.parametrize(("width", "result"), [(8, 8), (24, 16), (8, 16), (6, 6), (256, 256)])
def test_heads_of_any_width_reach_the_flash_kernel_as_it_takes_them(
    width: int, result: int, scaling: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(varlen, "varlen_attn", kernel)
    torch.manual_seed(0)
    tokens = int(BOUNDS[-1])
    query, key = (torch.randn(1, heads, tokens, width, dtype=torch.float64) for heads in (HEADS, GROUPS))
    value = torch.randn(1, GROUPS, tokens, result, dtype=torch.float64)
    found = _flash(query, key, value, BOUNDS, 11, scaling, True)
    expected, _ = document_attention(
        nn.Identity(), query, key, value, None, scaling=scaling, cu_seq_lens_q=BOUNDS, max_length_q=11
    )
    torch.testing.assert_close(found, expected)


def test_the_flash_kernel_gets_no_float32_and_no_heads_that_are_too_wide() -> None:
    for width, dtype, reason in (
        (8, torch.float32, "in float32"),
        (264, torch.bfloat16, "at most 256 numbers, not 264"),
    ):
        parts = [torch.zeros(1, 2, 24, width, dtype=dtype)] * 3
        with pytest.raises(ToolkitError, match=reason):
            _flash(*parts, BOUNDS, 11, None, False)
