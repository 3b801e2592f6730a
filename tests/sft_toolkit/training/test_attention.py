"""Attention within documents beside softmax under an explicit mask."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sft_toolkit.errors import ToolkitError
from sft_toolkit.training.attention import document_attention

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
