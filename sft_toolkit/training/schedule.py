"""Learning rates as a pure function of the step, so that there is no schedule to save."""

from __future__ import annotations

import math

from sft_toolkit.choices import Schedule


def rate_share(
    schedule: Schedule, step: int, steps: int, warmup_ratio: float, decay_ratio: float, floor: float = 0.0
) -> float:
    """Share of the peak learning rate at `step` of `steps`, from 0; above 0 and at most 1.

    It rises linearly over the first `warmup_ratio` of the steps (0 … 1). From there to the end, "cosine" falls as half
    a period, "linear" as a line; "wsd" (warm-up, stable, decay) stays, and falls as a line over the last `decay_ratio`
    of the steps (0 … 1). What falls ends above `floor`, and would reach it one step later.
    """
    rising = math.ceil(warmup_ratio * steps)
    if step < rising:
        return (step + 1) / rising
    return floor + (1 - floor) * _falling(schedule, step, steps, rising, decay_ratio)


def _falling(schedule: Schedule, step: int, steps: int, rising: int, decay_ratio: float) -> float:
    done = (step - rising) / (steps - rising)
    if schedule == "cosine":
        return (1 + math.cos(math.pi * done)) / 2
    if schedule == "linear":
        return 1 - done
    falling = math.ceil(decay_ratio * steps)
    return min(1.0, (steps - step) / falling) if falling else 1.0
