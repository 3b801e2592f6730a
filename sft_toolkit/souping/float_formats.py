"""Floating point formats: exactly to float64, and back in one rounding to nearest even.

bfloat16 is done by hand, for numpy has none. float64 -> float32 -> bfloat16 would round twice: a value just above the
midpoint of two bfloat16 falls on the midpoint first and then to the even side, which may be below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float64s = NDArray[np.float64]
Storage = NDArray[Any]


class Scratch:
    """Buffers of one thread for up to `size` elements, small enough for its second level cache."""

    def __init__(self, size: int) -> None:
        self.quads = np.empty(size, np.uint64)
        self.words = np.empty(size, np.uint32)
        self.more_words = np.empty(size, np.uint32)


@dataclass(frozen=True)
class FloatFormat:
    """How a dtype's elements are stored, read into float64, written from float64 and found to be finite."""

    storage: np.dtype[Any]
    decode: Callable[[Storage, Float64s, Scratch], None]
    encode: Callable[[Float64s, Storage, Scratch], None]
    all_finite: Callable[[Storage], bool]


def _decode_native(stored: Storage, values: Float64s, scratch: Scratch) -> None:
    np.copyto(values, stored)


def _encode_native(values: Float64s, stored: Storage, scratch: Scratch) -> None:
    np.copyto(stored, values, casting="same_kind")


def _native_all_finite(stored: Storage) -> bool:
    return bool(np.isfinite(stored).all())


def _decode_bfloat16(stored: Storage, values: Float64s, scratch: Scratch) -> None:
    words = scratch.words[: stored.size]
    np.copyto(words, stored)
    np.left_shift(words, 16, out=words)
    np.copyto(values, words.view(np.float32))


_LOW = np.uint64((1 << 42) - 1)
"""The bits of a float64 below its 11 leading significant ones."""


def _encode_bfloat16(values: Float64s, stored: Storage, scratch: Scratch) -> None:
    """Keep 11 significant bits, the last set where anything follows ("round to odd"), then round to bfloat16's 8.

    The 11 bits fit float32 exactly down to 2**-139, below which everything becomes zero, so that the conversion to
    float32 never crosses a midpoint of bfloat16. Two bits more than the target has suffice: Boldo & Melquiond 2008,
    "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd".
    """
    odd = scratch.quads[: values.size]
    bits = values.view(np.uint64)
    np.bitwise_and(bits, _LOW, out=odd)
    np.add(odd, _LOW, out=odd)
    np.bitwise_or(odd, bits, out=odd)
    np.bitwise_and(odd, ~_LOW, out=odd)

    words, carry = scratch.words[: values.size], scratch.more_words[: values.size]
    np.copyto(words.view(np.float32), odd.view(np.float64), casting="same_kind")
    np.right_shift(words, 16, out=carry)
    np.bitwise_and(carry, 1, out=carry)
    np.add(carry, 0x7FFF, out=carry)
    np.add(words, carry, out=words)
    np.right_shift(words, 16, out=words)
    np.copyto(stored, words, casting="unsafe")


def _bfloat16_all_finite(stored: Storage) -> bool:
    """Exponents of all ones are the largest patterns of either sign: read as signed, then as unsigned numbers."""
    return bool(stored.size == 0 or (stored.view(np.int16).max() < 0x7F80 and stored.max() < 0xFF80))


def _native(code: str) -> FloatFormat:
    return FloatFormat(np.dtype(code), _decode_native, _encode_native, _native_all_finite)


FORMATS = {
    "BF16": FloatFormat(np.dtype("<u2"), _decode_bfloat16, _encode_bfloat16, _bfloat16_all_finite),
    "F16": _native("<f2"),
    "F32": _native("<f4"),
    "F64": _native("<f8"),
}
"""The formats that can be averaged, by their safetensors name."""
