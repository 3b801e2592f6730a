"""Where time and memory of a step go: torch's profiler for a few steps, and the most that was ever held."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.profiler import profile, schedule


@contextmanager
def profiled(folder: Path, rank: int, steps: int) -> Iterator[Callable[[], None]]:
    """Write a trace of `steps` steps into `folder`, for chrome://tracing or Perfetto; 0: none.

    Yields what is to be called after every step. The first step is left out: it allocates and compiles.
    """
    if not steps:
        yield lambda: None
        return

    def write(profiler: profile) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        profiler.export_chrome_trace(str(folder / f"rank-{rank}.json"))

    with profile(schedule=schedule(wait=0, warmup=1, active=steps, repeat=1), on_trace_ready=write) as profiler:
        yield profiler.step


def peak_memory(device: torch.device) -> int:
    """Bytes that this rank has held at most: of its GPU, else of its process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
