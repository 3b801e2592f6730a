"""How far 95% of a mean's errors reach where its noise is only estimated: Student's t instead of 1.96."""

from __future__ import annotations

from sft_toolkit.labelers.wilson import Z_95

# fmt: off
_TABLE = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)
# fmt: on


def student_95(freedom: int | None) -> float:
    """The 97.5% quantile of t with `freedom` degrees of it, 1 or more; of the normal distribution where it is None.

    Beyond 30 by its expansion in 1/freedom, whose error is below 1e-5 there (Abramowitz & Stegun 26.7.5).
    """
    z = Z_95
    if freedom is None:
        return z
    if freedom <= len(_TABLE):
        return _TABLE[freedom - 1]
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
