"""Weights as exact numbers."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sft_toolkit.errors import UsageError
from sft_toolkit.souping.weights import Combination, parse_weight, task_arithmetic, weighted_mean


def mean_of(*texts: str) -> Combination:
    return weighted_mean([parse_weight(text) for text in texts])


def test_decimals_become_integers_without_a_common_factor() -> None:
    assert mean_of("0.1", "0.3") == Combination((1.0, 3.0), 4.0)
    assert mean_of("10", "20") == Combination((1.0, 2.0), 3.0)
    assert mean_of("1/3", "1/6") == Combination((2.0, 1.0), 3.0)
    assert mean_of("1e-3", " 0.002 ") == Combination((1.0, 2.0), 3.0)


def test_a_float_means_its_shortest_decimal() -> None:
    assert weighted_mean([parse_weight(0.1), parse_weight(0.9)]) == Combination((1.0, 9.0), 10.0)


def test_negative_weights_count_and_a_negative_sum_is_turned_around() -> None:
    assert mean_of("-1", "3") == Combination((-1.0, 3.0), 2.0)
    assert mean_of("1", "-3") == Combination((-1.0, 3.0), 2.0)


def test_a_sum_starts_at_the_first_weight_that_is_not_zero() -> None:
    assert mean_of("0", "2", "1").first == 1


@pytest.mark.parametrize("texts", [("1", "-1"), ("0", "0"), ("0.1", "0.2", "-0.3")])
def test_weights_that_sum_to_zero_are_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="sum to zero"):
        mean_of(*texts)


@pytest.mark.parametrize("text", ["", "x", "nan", "inf", "1/0", "1e9999", "1e-999999999", "1,2"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a number"):
        parse_weight(text)


def test_weights_too_fine_for_integers_become_the_nearest_floats() -> None:
    assert mean_of("0.30000000000000000001", "1") == Combination((0.3, 1.0), 1.3)
    assert mean_of("1e400", "1e400") == Combination((1.0, 1.0), 2.0)
    with pytest.raises(UsageError, match="do not fit"):
        mean_of("1e400", "1")


def test_a_mixture_on_the_simplex_leaves_nothing_of_the_base() -> None:
    alphas = [Fraction("0.25"), Fraction("0.75")]
    assert task_arithmetic(alphas) == Combination((0.0, 1.0, 3.0), 4.0)


def test_a_mixture_inside_the_simplex_keeps_the_rest_of_the_base() -> None:
    """base + 0.5 (a - base) + 0.25 (b - base) = 0.25 base + 0.5 a + 0.25 b."""
    assert task_arithmetic([Fraction("0.5"), Fraction("0.25")]) == Combination((1.0, 2.0, 1.0), 4.0)


@given(st.lists(st.decimals(-1000, 1000, places=4), min_size=1, max_size=8))
def test_the_coefficients_keep_the_weights_ratios_exactly(decimals: list) -> None:
    weights = [parse_weight(str(number)) for number in decimals]
    assume(sum(weights) != 0)
    combination = weighted_mean(weights)
    for weight, coefficient in zip(weights, combination.coefficients, strict=True):
        assert Fraction(coefficient) / Fraction(combination.divisor) == weight / sum(weights)
