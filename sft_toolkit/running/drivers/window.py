"""The window of tasks that are under way while the results before theirs are waited for."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

_AHEAD_PER_WORKER = 2

Task = TypeVar("Task")
Pending = TypeVar("Pending")
Result = TypeVar("Result")


def in_order(
    tasks: Iterator[Task], submit: Callable[[Task], Pending], result: Callable[[Pending], Result], workers: int
) -> Iterator[Result]:
    """Yield the result of each task, in order; two tasks per worker are submitted ahead of their turn, no more."""
    pending = deque(map(submit, itertools.islice(tasks, workers * _AHEAD_PER_WORKER)))
    while pending:
        found = result(pending.popleft())
        pending.extend(map(submit, itertools.islice(tasks, 1)))
        yield found
