"""The floating point formats that can be averaged: into a float64 sum exactly, out of it in one rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sft_toolkit.souping import bfloat16
from sft_toolkit.souping.bfloat16 import Float64s

Storage = NDArray[Any]


@dataclass(frozen=True)
class FloatFormat:
    """How a format's elements are stored, added up, written and found to be finite.

    accumulate(stored, coefficient, total, first): total += coefficient * stored; where `first`, total = the product.
    round_quotient(total, divisor, stored) -> bool: stored = total / divisor, rounded once; whether all is finite.
    """

    storage: np.dtype[Any]
    accumulate: Callable[[Storage, float, Float64s, bool], None]
    round_quotient: Callable[[Float64s, float, Storage], bool]
    all_finite: Callable[[Storage], bool]


def _accumulate(stored: Storage, coefficient: float, total: Float64s, first: bool) -> None:
    product = stored.astype(np.float64)
    product *= coefficient
    if first:
        total[:] = product
    else:
        total += product


def _round_quotient(total: Float64s, divisor: float, stored: Storage) -> bool:
    stored[:] = total / divisor
    return _all_finite(stored)


def _all_finite(stored: Storage) -> bool:
    return bool(np.isfinite(stored).all())


def _native(code: str) -> FloatFormat:
    return FloatFormat(np.dtype(code), _accumulate, _round_quotient, _all_finite)


FORMATS = {
    "BF16": FloatFormat(np.dtype("<u2"), bfloat16.accumulate, bfloat16.round_quotient, bfloat16.all_finite),
    "F16": _native("<f2"),
    "F32": _native("<f4"),
    "F64": _native("<f8"),
}
"""By their name in safetensors. numpy rounds from float64 to each native one directly, once."""
