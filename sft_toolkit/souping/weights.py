"""Weights as the decimal numbers that were written, turned into integers without a common factor.

In float64, 0.1 and 0.9 are not one to nine: with such weights 0.8% of the means of two bfloat16 checkpoints come out
wrong, for ties fall to the other side. As 1 and 9, products and sums are exact, and only the division rounds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm

from sft_toolkit.errors import UsageError

_EXACT = 2**53
_HUGE_EXPONENT = re.compile(r"[eE][+-]?\d{4}")


@dataclass(frozen=True)
class Combination:
    """sum(coefficients[i] * input[i]) / divisor, all float64. `ruled`: tensors that are combined otherwise, by name."""

    coefficients: tuple[float, ...]
    divisor: float
    ruled: Mapping[str, Combination] = field(default_factory=dict)

    def of(self, tensor: str) -> Combination:
        """How this tensor is combined."""
        return self.ruled.get(tensor, self)

    @cached_property
    def first(self) -> int:
        """The first input that counts: the sum starts from its product."""
        return next(position for position, coefficient in enumerate(self.coefficients) if coefficient)


def parse_weight(text: str | float) -> Fraction:
    """A decimal or a ratio ("0.25", "1e-3", "1/3"); a float means the shortest decimal that names it."""
    try:
        if _HUGE_EXPONENT.search(str(text)):
            raise ValueError
        return Fraction(str(text).strip())
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"weight {text} is not a number", "write a decimal or a ratio, as in 0.25 or 1/3") from None


def weighted_mean(weights: Sequence[Fraction], ruled: Mapping[str, Combination] | None = None) -> Combination:
    """The mean with these weights, divided by their sum, but for `ruled` tensors. Raises UsageError where it is 0."""
    total = sum(weights, start=Fraction(0))
    if total == 0:
        raise UsageError(f"the weights {_shown(weights)} sum to zero", "give weights that do not cancel")
    return replace(_combination(weights, total), ruled=ruled or {})


def task_arithmetic(alphas: Sequence[Fraction]) -> Combination:
    """base + sum(alpha[k] * (specialist[k] - base)), over the inputs base, specialist[0], specialist[1], ...

    That is (1 - sum(alpha)) * base + sum(alpha[k] * specialist[k]): on the simplex, the specialists' weighted mean.
    Wang et al. 2026 (MergeMix, arXiv 2601.17858).
    """
    return _combination((1 - sum(alphas, start=Fraction(0)), *alphas), Fraction(1))


def _combination(weights: Sequence[Fraction], divisor: Fraction) -> Combination:
    """Scale to integers without a common factor where float64 holds them; else to the nearest float64."""
    numbers = (*weights, divisor)
    scale = Fraction(lcm(*(number.denominator for number in numbers)), 1)
    scale /= gcd(*(int(number * scale) for number in numbers))
    if max(abs(number * scale) for number in numbers) > _EXACT:
        scale = Fraction(1)
    if divisor < 0:
        scale = -scale
    try:
        *coefficients, scaled_divisor = (float(number * scale) for number in numbers)
    except OverflowError:
        raise UsageError(f"the weights {_shown(weights)} do not fit float64") from None
    return Combination(tuple(coefficients), scaled_divisor)


def _shown(weights: Sequence[Fraction]) -> str:
    return ", ".join(map(str, weights))
