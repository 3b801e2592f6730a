"""What `effort` reports: the edges of each group, and how its labels split."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sft_toolkit.labelers.effort import LEVELS
from sft_toolkit.stage import Counters
from sft_toolkit.stages.effort.edges import FittedEdges

EDGES_HEADER = ("group", "exchanges", "l30", "l70", "labelled by")
SPLIT_HEADER = ("group", "exchanges", *LEVELS, "labelled by")
_NOT_FITTED = "a group that the fit did not see"


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


def _labelled_by(edges: FittedEdges) -> dict[str, str]:
    found = {group_name(group): edges.table.find(*group) for group in edges.groups}
    return {name: f"{level}{', l30 = l70' if used.degenerate else ''}" for name, (level, used) in found.items()}


def _shares(split: Counter[str]) -> tuple[int, float, float, float, float]:
    none, *reasoned = (split[level] for level in LEVELS)
    total = none + sum(reasoned)
    low, medium, high = (count / max(sum(reasoned), 1) for count in reasoned)
    return total, none / total, low, medium, high
