"""What `language` and `distill` report: how many traces stay in the language, with Wilson 95% intervals."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sft_toolkit.labelers.wilson import wilson_interval
from sft_toolkit.stage import Counters
from sft_toolkit.stages.language import DRIFTS, STAYS, UNDECIDED

RATES_HEADER = ("traces", "judged", "stay", "rate", "95% from", "to", "undecided")


BY_DOMAIN, BY_OPENER = "by domain: ", "by opener: "
"""How the names of groups begin that `distill --ab` splits its traces into beside the two halves."""

_NAMES = {"": "language", BY_DOMAIN: "language_by_domain", BY_OPENER: "language_by_opener"}

Rates = dict[str, dict[str, Any]]


def language_rates(counters: Counters) -> dict[str, Rates]:
    """`language`, and where traces were split further `language_by_domain` and `language_by_opener`.

    Each holds per group: traces judged, how many stay in the language, their rate and its interval; what is undecided
    apart.
    """
    found: dict[str, Rates] = {"language": {}}
    for group, counts in sorted(counters.splits.items()):
        prefix = next((each for each in _NAMES if each and group.startswith(each)), "")
        found.setdefault(_NAMES[prefix], {})[group.removeprefix(prefix)] = _rate(counts)
    return found


def rates_rows(rates: Rates) -> list[tuple[Any, ...]]:
    """One row of RATES_HEADER per group."""
    names = ("judged", "stays", "rate", "low", "high", "undecided")
    return [(group, *(rate[name] for name in names)) for group, rate in rates.items()]


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
