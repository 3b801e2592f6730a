"""What `language` and `distill` report: how many traces stay in the language, with Wilson 95% intervals."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sft_toolkit.labelers.wilson import wilson_interval
from sft_toolkit.stage import Counters
from sft_toolkit.stages.language import DRIFTS, STAYS, UNDECIDED

RATES_HEADER = ("traces", "judged", "stay", "rate", "95% from", "to", "undecided")


def language_rates(counters: Counters) -> dict[str, dict[str, Any]]:
    """Per group: traces judged, how many stay in the language, their rate and its interval; what is undecided apart."""
    return {group: _rate(counts) for group, counts in sorted(counters.splits.items())}


def rates_rows(counters: Counters) -> list[tuple[Any, ...]]:
    """One row of RATES_HEADER per group."""
    names = ("judged", "stays", "rate", "low", "high", "undecided")
    return [(group, *(rate[name] for name in names)) for group, rate in language_rates(counters).items()]


def _rate(counts: Counter[str]) -> dict[str, Any]:
    judged = counts[STAYS] + counts[DRIFTS]
    low, high = wilson_interval(counts[STAYS], judged) if judged else (None, None)
    return {
        "judged": judged,
        "stays": counts[STAYS],
        "rate": counts[STAYS] / judged if judged else None,
        "low": low,
        "high": high,
        "undecided": counts[UNDECIDED],
    }
