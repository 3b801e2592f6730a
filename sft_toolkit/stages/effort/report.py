"""What `effort` reports: the edges of each group, how its labels split, and which groups split as none should."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sft_toolkit.labelers.effort import LEVELS
from sft_toolkit.stage import Counters
from sft_toolkit.stages.effort.edges import FittedEdges

EDGES_HEADER = ("group", "exchanges", "l30", "l70", "labelled by")
SPLIT_HEADER = ("group", "exchanges", *LEVELS, "labelled by")
_NOT_FITTED = "a group that the fit did not see"

EXPECTED = (0.3, 0.4, 0.3)
"""Shares of low, medium and high among lengths whose own 30th and 70th percentile are the edges."""
_FEW, _MOST = 20, 0.6
_MANY, _OFF = 100, 0.15
"""Independent draws of 30/40/30 break the first bound in 2.3 of 100 groups of 20 (0.9 of 30), the second in 0.5 of 100
groups of 100; labels by a group's own edges vary less than independent draws."""


def group_name(group: tuple[str, str]) -> str:
    """A (data set, difficulty) for people; "-" is a record that does not say."""
    return " / ".join(name or "-" for name in group)


def edges_rows(edges: FittedEdges) -> list[tuple[Any, ...]]:
    """One row of EDGES_HEADER per fitted group: its own edges, and those that label it."""
    labelled_by = _labelled_by(edges)
    return [
        (group_name(group), own.n, own.l30, own.l70, labelled_by[group_name(group)])
        for group, own in sorted(edges.groups.items())
    ]


def split_rows(counters: Counters, edges: FittedEdges) -> list[tuple[Any, ...]]:
    """One row of SPLIT_HEADER per group that was labelled, the last one over all of them.

    `none` is a share of all exchanges; `low`, `medium` and `high` are shares of those with reasoning.
    """
    labelled_by = _labelled_by(edges)
    overall: Counter[str] = sum(counters.splits.values(), Counter())
    rows = [(group, *_shares(split), labelled_by.get(group, _NOT_FITTED)) for group, split in counters.splits.items()]
    return [*sorted(rows), ("all", *_shares(overall), "")]


def degenerate_groups(edges: FittedEdges) -> list[str]:
    """Groups whose labels depend on two edges that coincide."""
    return [group_name(group) for group in sorted(edges.groups) if edges.table.find(*group)[1].degenerate]


def lopsided_groups(counters: Counters) -> dict[str, str]:
    """Groups that are far from 30/40/30, and how they split: 20 or more exchanges with reasoning of which over 60% are
    of one level, or 100 or more of which a share is off by over .15.

    Groups of fewer than 20 count as one, so that many small ones that all fall into one level are seen too.
    """
    reasoned = {group: [split[level] for level in LEVELS[1:]] for group, split in counters.splits.items()}
    small = [counts for counts in reasoned.values() if sum(counts) < _FEW]
    if len(small) > 1:
        reasoned[f"all {len(small)} groups of fewer than {_FEW}"] = [sum(counts) for counts in zip(*small, strict=True)]
    return {group: _listed(counts) for group, counts in sorted(reasoned.items()) if _is_lopsided(counts)}


def _is_lopsided(counts: list[int]) -> bool:
    n = sum(counts)
    if n < _FEW:
        return False
    off = max(abs(count / n - share) for count, share in zip(counts, EXPECTED, strict=True))
    return max(counts) > _MOST * n or (n >= _MANY and off > _OFF)


def _listed(counts: list[int]) -> str:
    shares = ", ".join(f"{count / sum(counts):.0%} {level}" for level, count in zip(LEVELS[1:], counts, strict=True))
    return f"{shares} of {sum(counts):,} exchanges with reasoning"


def _labelled_by(edges: FittedEdges) -> dict[str, str]:
    found = {group_name(group): edges.table.find(*group) for group in edges.groups}
    return {name: f"{level}{', l30 = l70' if used.degenerate else ''}" for name, (level, used) in found.items()}


def _shares(split: Counter[str]) -> tuple[int, float, float, float, float]:
    none, *reasoned = (split[level] for level in LEVELS)
    total = none + sum(reasoned)
    low, medium, high = (count / max(sum(reasoned), 1) for count in reasoned)
    return total, none / total, low, medium, high
