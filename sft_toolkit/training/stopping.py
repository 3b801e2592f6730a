"""Signals that ask a run to stop: heeded between steps, by all ranks at the same step."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import Tensor

_HEEDED = (signal.SIGTERM, signal.SIGINT)


class StopRequest:
    """While it is entered, SIGTERM and SIGINT are noted. `signal` is the one that all ranks have agreed on, else 0.

    Which rank a signal reaches, and when, differs: ranks therefore sum their flags with the loss of each step.
    """

    def __init__(self) -> None:
        self.signal = 0
        self._received: set[int] = set()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        self._before = {number: signal.signal(number, self._note) for number in _HEEDED}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def flags(self) -> Tensor:
        """Signals that this rank received, for summing over ranks: float32[2]."""
        return torch.tensor([float(number in self._received) for number in _HEEDED])

    def heed(self, summed: list[float]) -> None:
        """Take note of what any rank received: the sums of `flags`."""
        self.signal = next((number for number, count in zip(_HEEDED, summed, strict=True) if count), 0)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._received.add(number)
