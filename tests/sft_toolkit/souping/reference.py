"""Floating point formats in exact rational arithmetic, after IEEE 754: what the souping code is compared with."""

from __future__ import annotations

from fractions import Fraction
from math import copysign
from typing import NamedTuple

import numpy as np


class Format(NamedTuple):
    """`precision` significant bits, the leading one included; `exponent_bits` of exponent."""

    precision: int
    exponent_bits: int

    @property
    def width(self) -> int:
        return self.precision + self.exponent_bits

    @property
    def bias(self) -> int:
        return 2 ** (self.exponent_bits - 1) - 1

    @property
    def largest(self) -> Fraction:
        return (2 - Fraction(2) ** (1 - self.precision)) * Fraction(2) ** self.bias


FORMATS = {"BF16": Format(8, 8), "F16": Format(11, 5), "F32": Format(24, 8), "F64": Format(53, 11)}


def value_of(bits: int, form: Format) -> Fraction | None:
    """The number that a pattern stands for; None for NaN and infinity. The sign of zero is lost."""
    mantissa_bits = form.precision - 1
    mantissa = bits & ((1 << mantissa_bits) - 1)
    exponent = bits >> mantissa_bits & ((1 << form.exponent_bits) - 1)
    sign = -1 if bits >> (form.width - 1) else 1
    if exponent == (1 << form.exponent_bits) - 1:
        return None
    if exponent == 0:
        return sign * mantissa * Fraction(2) ** (1 - form.bias - mantissa_bits)
    return sign * (mantissa + (1 << mantissa_bits)) * Fraction(2) ** (exponent - form.bias - mantissa_bits)


def nearest(number: Fraction, form: Format) -> Fraction | None:
    """The nearest number of the format, ties to even; None where that is infinite."""
    if number == 0:
        return number
    exponent = max(_floor_log2(abs(number)), 1 - form.bias)
    quantum = Fraction(2) ** (exponent - form.precision + 1)
    rounded = round(number / quantum) * quantum
    return rounded if abs(rounded) <= form.largest else None


def _floor_log2(number: Fraction) -> int:
    guess = number.numerator.bit_length() - number.denominator.bit_length()
    return guess if Fraction(2) ** guess <= number else guess - 1


def mean_in_float64(values: list[float], weights: list[int]) -> float:
    """The decided arithmetic, one IEEE operation at a time: first product first, divided by the sum of weights."""
    total: float | None = None
    for value, weight in zip(values, weights, strict=True):
        if weight:
            total = weight * value if total is None else total + weight * value
    assert total is not None
    return total / sum(weights)


def to_float(bits: int, form: Format) -> float:
    """A finite pattern as a float, -0 kept."""
    number = value_of(bits, form)
    assert number is not None
    return copysign(float(number), -1 if bits >> (form.width - 1) else 1)


def storage_of(dtype: str) -> np.dtype:
    return np.dtype(f"<u{FORMATS[dtype].width // 8}")
