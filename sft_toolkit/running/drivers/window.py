"""The window of tasks that are under way while the results before theirs are waited for."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

AHEAD_PER_WORKER = 2

Task = TypeVar("Task")
Pending = TypeVar("Pending")
Result = TypeVar("Result")


def in_order(
    tasks: Iterator[Task], submit: Callable[[Task], Pending], result: Callable[[Pending], Result], ahead: int
) -> Iterator[Result]:
    """Yield the result of each task, in order; `ahead` tasks are under way, no more."""
    pending = deque(map(submit, itertools.islice(tasks, ahead)))
    while pending:
        found = result(pending.popleft())
        pending.extend(map(submit, itertools.islice(tasks, 1)))
        yield found
