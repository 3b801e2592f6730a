"""A plan: which packed sequence each rank reads, at each microbatch of each optimiser step.

Every rank computes the same plan from (costs, ranks, microbatches, seed, epoch), with no communication, and only the
window around the step it is at: an epoch's shuffle of n indices, and one window arranged at a time. Resuming at a step
is asking for that step.

The tail. An epoch has ceil(n / (ranks * microbatches)) steps and reads every sequence once. Windows are made of whole
steps, the last window of as many as are left. The sequences that fill no whole step make the last step; what it lacks
is FILLER, which the trainer reads as a fully masked sequence, so that all ranks take the same number of steps. The
shuffle decides anew in each epoch which sequences these are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sft_toolkit.packers.shuffling import Shuffler

FILLER = -1


class Arrange(Protocol):
    """How one window is laid out.

    costs: int64[steps, microbatches, ranks], tokens squared, in shuffled order; filler costs less than any sequence
    Returns the places of a window of that shape: which flat index of `costs` goes where, each exactly once.
    """

    def __call__(self, costs: NDArray[np.int64], shuffler: Shuffler, /) -> NDArray[np.int64]: ...


class Plan:
    """The order of n packed sequences over ranks and steps; a pure function of its arguments.

    costs: int64[n], tokens squared
    window: sequences per rank that are arranged together; rounded down to whole steps, at least one
    """

    def __init__(
        self, costs: ArrayLike, ranks: int, microbatches: int, *, window: int, seed: int, arrange: Arrange
    ) -> None:
        if ranks < 1 or microbatches < 1:
            raise ValueError(f"a plan needs at least 1 rank and 1 microbatch, not {ranks} and {microbatches}")
        self._costs = np.append(np.asarray(costs, np.int64), FILLER)
        self._arrange = arrange
        self.sequences = len(self._costs) - 1
        self.ranks = ranks
        self.microbatches = microbatches
        self.seed = seed
        self.window_steps = max(1, window // microbatches)
        self._shuffled = _Latest(self._shuffle)
        self._window = _Latest(self._arrange_window)

    @property
    def step_size(self) -> int:
        """Sequences in a whole step."""
        return self.ranks * self.microbatches

    @property
    def whole_steps(self) -> int:
        return self.sequences // self.step_size

    @property
    def steps(self) -> int:
        """Steps in an epoch, the one with filler included."""
        return -(-self.sequences // self.step_size)

    def step(self, epoch: int, step: int) -> NDArray[np.int64]:
        """Sequences of one step: int64[microbatches, ranks]. `step` counts from 0 within the epoch."""
        if not 0 <= step < self.steps:
            raise IndexError(f"step {step} is outside an epoch of {self.steps} steps")
        if step >= self.whole_steps:
            return self._window(epoch, self.whole_steps)[0]
        within = step % self.window_steps
        return self._window(epoch, step - within)[within]

    def sequence(self, epoch: int, step: int, microbatch: int, rank: int) -> int:
        """The sequence that `rank` reads at `microbatch` of `step`, or FILLER."""
        return int(self.step(epoch, step)[microbatch, rank])

    def epoch(self, epoch: int) -> NDArray[np.int64]:
        """A whole epoch: int64[steps, microbatches, ranks]."""
        windows = [self._window(epoch, first) for first in self._first_steps()]
        return np.concatenate([np.empty((0, self.microbatches, self.ranks), np.int64), *windows])

    def _first_steps(self) -> Iterator[int]:
        yield from range(0, self.whole_steps, self.window_steps)
        if self.whole_steps < self.steps:
            yield self.whole_steps

    def _shuffle(self, epoch: int) -> NDArray[np.int64]:
        filler = np.full(self.steps * self.step_size - self.sequences, FILLER)
        return np.append(Shuffler(self.seed, epoch).permutation(self.sequences), filler)

    def _arrange_window(self, epoch: int, first: int) -> NDArray[np.int64]:
        """The window whose first step is `first`: int64[steps, microbatches, ranks]."""
        last = min(first + self.window_steps, self.whole_steps) if first < self.whole_steps else self.steps
        members = self._shuffled(epoch)[first * self.step_size : last * self.step_size]
        costs = self._costs[members].reshape(-1, self.microbatches, self.ranks)
        return members[self._arrange(costs, Shuffler(self.seed, epoch, first))]


class _Latest:
    """A function that remembers its latest result: a trainer asks for the steps of a window one after the other."""

    def __init__(self, function: Callable[..., NDArray[np.int64]]) -> None:
        self._function = function
        self._arguments: tuple[int, ...] | None = None
        self._result = np.empty(0, np.int64)

    def __call__(self, *arguments: int) -> NDArray[np.int64]:
        if arguments != self._arguments:
            self._result = self._function(*arguments)
            self._arguments = arguments
        return self._result


def random_order(costs: ArrayLike, ranks: int, microbatches: int = 1, *, seed: int = 0) -> Plan:
    """The shuffle as it is: what training without balance reads."""
    return Plan(costs, ranks, microbatches, window=microbatches, seed=seed, arrange=_as_shuffled)


def _as_shuffled(costs: NDArray[np.int64], _: Shuffler) -> NDArray[np.int64]:
    return np.arange(costs.size).reshape(costs.shape)
