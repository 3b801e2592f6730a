"""What `verify` reports: per tool, how often its call was derived, and where derived calls differ."""

from __future__ import annotations

from typing import Any

from sft_toolkit.labelers.wilson import wilson_interval
from sft_toolkit.stage import Counters
from sft_toolkit.stages.verify import AGREES, DIFFERS, LEAK

AGREEMENT_HEADER = ("tool", "turns", "agree", "rate", "95% from", "to", "leak", "differ at")
_SHOWN_PATHS = 3


def agreement_rows(counters: Counters) -> list[tuple[Any, ...]]:
    """One row of AGREEMENT_HEADER per tool."""
    rows = []
    for tool, counts in sorted(counters.splits.items()):
        turns = counts[AGREES] + counts[DIFFERS]
        paths = [f"{path} ({n})" for path, n in counts.most_common() if path not in (AGREES, DIFFERS, LEAK)]
        rate = (counts[AGREES] / turns, *wilson_interval(counts[AGREES], turns)) if turns else (None, None, None)
        rows.append((tool, turns, counts[AGREES], *rate, counts[LEAK], ", ".join(paths[:_SHOWN_PATHS])))
    return rows
