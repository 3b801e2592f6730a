"""Rounding to the formats that can be averaged, against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sft_toolkit.souping.float_formats import FORMATS
from tests.sft_toolkit.souping import reference

PATTERNS = np.arange(1 << 16).astype(np.uint16)
FINITE_POSITIVE = PATTERNS[:0x7F80]


def bfloat16_values(patterns: np.ndarray) -> np.ndarray:
    return np.array([reference.to_float(int(bits), reference.FORMATS["BF16"]) for bits in patterns])


def rounded(values: np.ndarray, divisor: float = 1.0, dtype: str = "BF16") -> np.ndarray:
    form = FORMATS[dtype]
    stored = np.empty(values.size, form.storage)
    with np.errstate(all="ignore"):
        form.round_quotient(values.astype(np.float64), divisor, stored)
    return stored.view(reference.storage_of(dtype))


def test_every_bfloat16_is_read_exactly() -> None:
    finite = PATTERNS[PATTERNS & 0x7FFF < 0x7F80]
    total = np.empty(finite.size)
    FORMATS["BF16"].accumulate(finite, 1.0, total, True)
    assert np.array_equal(total.view(np.uint64), bfloat16_values(finite).view(np.uint64))


@pytest.mark.parametrize("sign", [1, -1])
def test_every_midpoint_of_bfloat16_goes_to_even_and_what_lies_beside_it_to_its_side(sign: int) -> None:
    values = bfloat16_values(FINITE_POSITIVE)
    midpoints = (values[:-1] + values[1:]) / 2
    below, above = FINITE_POSITIVE[:-1], FINITE_POSITIVE[1:]
    even = np.where(below % 2 == 0, below, above)
    negative = 0x8000 if sign < 0 else 0
    assert np.array_equal(rounded(sign * midpoints), even | negative)
    assert np.array_equal(rounded(sign * np.nextafter(midpoints, 0)), below | negative)
    assert np.array_equal(rounded(sign * np.nextafter(midpoints, np.inf)), above | negative)


def test_rounding_by_way_of_float32_would_fail_this_test() -> None:
    just_above = 1 + 2**-8 + 2**-40
    by_way_of_float32 = np.array([just_above], np.float32).view(np.uint32)
    assert by_way_of_float32[0] & 0xFFFF == 0x8000
    assert rounded(np.array([just_above]))[0] == 0x3F81


def test_bfloat16_overflows_from_the_midpoint_after_the_largest_number_on() -> None:
    threshold = float(reference.FORMATS["BF16"].largest) + 2.0**119
    assert rounded(np.array([threshold, np.nextafter(threshold, 0)])).tolist() == [0x7F80, 0x7F7F]


def test_what_is_not_finite_is_noticed_in_every_pattern() -> None:
    for bits in (0x7F80, 0x7F81, 0x7FFF, 0xFF80, 0xFFFF, 0x7F7F, 0xFF7F, 0, 0x8000):
        finite = bits & 0x7FFF < 0x7F80
        for width in (1, 5000):
            stored = np.zeros(width, np.uint16)
            stored[-1] = bits
            assert FORMATS["BF16"].all_finite(stored) is finite
            total = np.zeros(width)
            FORMATS["BF16"].accumulate(stored, 1.0, total, True)
            assert FORMATS["BF16"].round_quotient(total, 1.0, np.empty(width, np.uint16)) is finite


@pytest.mark.parametrize("dtype", list(FORMATS))
@given(
    number=st.floats(allow_nan=False, allow_infinity=False) | st.floats(-4, 4) | st.floats(-1e-37, 1e-37),
    divisor=st.sampled_from([1.0, 2.0, 3.0, 7.0, 1e6]),
)
@example(number=-0.0, divisor=3.0)
@example(number=2.0**-134, divisor=1.0)
@example(number=float(np.nextafter(2.0**-134, 1)), divisor=1.0)
@settings(max_examples=300, deadline=None)
def test_a_quotient_is_rounded_once_to_the_nearest(dtype: str, number: float, divisor: float) -> None:
    form = reference.FORMATS[dtype]
    bits = int(rounded(np.array([number]), divisor, dtype)[0])
    assert reference.value_of(bits, form) == reference.nearest(Fraction(number / divisor), form)
    assert bits >> (form.width - 1) == np.signbit(number)


@pytest.mark.parametrize("dtype", list(FORMATS))
def test_a_sum_starts_from_its_first_product_so_that_minus_zero_survives(dtype: str) -> None:
    form = FORMATS[dtype]
    sign_bit = 1 << (reference.FORMATS[dtype].width - 1)
    minus_zero = np.array([sign_bit], reference.storage_of(dtype)).view(form.storage)
    total = np.full(1, 5.0)
    form.accumulate(minus_zero, 2.0, total, True)
    form.accumulate(minus_zero, 1.0, total, False)
    assert rounded(total, 3.0, dtype)[0] == sign_bit
