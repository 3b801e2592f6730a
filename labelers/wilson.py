"""Wilson's score interval of a proportion (Wilson 1927): sound for few trials and for rates near 0 and 1."""

from __future__ import annotations

import math

Z_95 = 1.959963984540054
"""The 97.5th percentile of the standard normal distribution: a two-sided 95% interval."""


def wilson_interval(successes: int, trials: int, z: float = Z_95) -> tuple[float, float]:
    """Lower and upper bound of the rate behind `successes` of `trials`.

    (p + z^2/2n ± z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n), with p = successes/n. Raises ValueError unless
    0 <= successes <= trials and trials > 0.
    """
    if not 0 <= successes <= trials or trials == 0:
        raise ValueError(f"{successes} of {trials} is no proportion")
    rate = successes / trials
    centre = rate + z * z / (2 * trials)
    half = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)
