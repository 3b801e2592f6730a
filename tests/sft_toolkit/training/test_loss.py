"""The chunked cross entropy beside the whole one of torch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from sft_toolkit.training.loss import Head, summed_cross_entropy

TOKENS, WIDTH, VOCABULARY = 50, 16, 97


@pytest.fixture
def case() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    hidden = torch.randn(TOKENS, WIDTH, dtype=torch.float64)
    weight = torch.randn(VOCABULARY, WIDTH, dtype=torch.float64)
    predictors = torch.randperm(TOKENS)[:31].sort().values
    return hidden, weight, predictors, torch.randint(VOCABULARY, (31,))


@pytest.mark.parametrize("logits_per_chunk", [1, 4 * VOCABULARY, 31 * VOCABULARY, 1 << 20])
@pytest.mark.parametrize(("scale", "cap"), [(1.0, None), (0.25, None), (0.5, 2.0)])
def test_loss_and_gradients_are_those_of_whole_logits(
    case: tuple[torch.Tensor, ...], logits_per_chunk: int, scale: float, cap: float | None
) -> None:
    hidden, weight, predictors, targets = case
    bias = torch.linspace(-1, 1, VOCABULARY, dtype=torch.float64)
    chunked = [tensor.float().requires_grad_() for tensor in (hidden, weight, bias)]
    head = Head(*chunked[1:], scale=scale, cap=cap)
    loss = summed_cross_entropy(chunked[0], head, predictors, targets, logits_per_chunk)
    (loss / 7).backward()
    whole = [tensor.clone().requires_grad_() for tensor in (hidden, weight, bias)]
    logits = scale * (whole[0][predictors] @ whole[1].T + whole[2])
    expected = F.cross_entropy(logits if cap is None else cap * (logits / cap).tanh(), targets, reduction="sum")
    (expected / 7).backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    for found, wanted in zip(chunked, whole, strict=True):
        torch.testing.assert_close(found.grad.double(), wanted.grad, rtol=1e-5, atol=1e-6)


def test_places_that_predict_nothing_get_no_gradient(case: tuple[torch.Tensor, ...]) -> None:
    hidden, weight, predictors, targets = case
    hidden = hidden.float().requires_grad_()
    summed_cross_entropy(hidden, Head(weight.float()), predictors, targets).backward()
    silent = torch.ones(TOKENS, dtype=torch.bool)
    silent[predictors] = False
    assert not hidden.grad[silent].any()
    assert hidden.grad[predictors].any(dim=1).all()


def test_a_sequence_without_loss_is_zero_and_so_are_its_gradients(case: tuple[torch.Tensor, ...]) -> None:
    hidden, weight = (tensor.float().requires_grad_() for tensor in case[:2])
    nothing = torch.empty(0, dtype=torch.int64)
    loss = summed_cross_entropy(hidden, Head(weight), nothing, nothing)
    loss.backward()
    assert loss.item() == 0
    assert not hidden.grad.any() and not weight.grad.any()


def test_in_bfloat16_the_sum_over_many_tokens_keeps_its_digits() -> None:
    torch.manual_seed(0)
    hidden, weight = torch.randn(20_000, 8).bfloat16(), torch.randn(32, 8).bfloat16()
    predictors, targets = torch.arange(20_000), torch.randint(32, (20_000,))
    loss = summed_cross_entropy(hidden, Head(weight), predictors, targets, 1 << 12)
    exact = F.cross_entropy((hidden @ weight.T).double(), targets, reduction="sum")
    assert loss.item() == pytest.approx(exact.item(), rel=1e-6)


def test_in_bfloat16_gradients_are_divided_by_the_exact_number_of_tokens() -> None:
    torch.manual_seed(0)
    hidden, weight = torch.randn(64, 8).bfloat16(), torch.randn(32, 8).bfloat16()
    predictors, targets = torch.arange(64), torch.randint(32, (64,))
    gradients = []
    for tokens in (1, 1003):  # 1/1003 is 0.24% less than the bfloat16 nearest to it
        leaves = [tensor.clone().requires_grad_() for tensor in (hidden, weight)]
        (summed_cross_entropy(leaves[0], Head(leaves[1]), predictors, targets) / tokens).backward()
        gradients.append([leaf.grad.double() for leaf in leaves])
    for whole, divided in zip(*gradients, strict=True):
        assert (divided.norm() * 1003 / whole.norm()).item() == pytest.approx(1, abs=5e-4)


def test_without_gradients_wanted_none_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden, weight = torch.randn(6, 8), torch.randn(32, 8, requires_grad=True)
    arguments = hidden, Head(weight), torch.arange(6), torch.arange(6)
    expected = summed_cross_entropy(*arguments)
    monkeypatch.delattr(torch, "zeros_like")
    with torch.no_grad():
        assert torch.equal(summed_cross_entropy(*arguments), expected)
