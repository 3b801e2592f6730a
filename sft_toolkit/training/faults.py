"""What ends a step, in words that say which option helps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from sft_toolkit.errors import ToolkitError
from sft_toolkit.training.batch import Batch
from sft_toolkit.training.options import TrainOptions

_CPU_ALLOCATOR = ("can't allocate memory", "not enough memory")


@contextmanager
def memory_explained(step: int, batch: Batch, options: TrainOptions) -> Iterator[None]:
    """Raise ToolkitError where memory runs out on `batch`, naming what has not been tried yet."""
    try:
        yield
    except (RuntimeError, MemoryError) as fault:
        if not out_of_memory(fault):
            raise
        tokens = batch.inputs["input_ids"].numel()
        raise ToolkitError(
            f"step {step}: out of memory on a sequence of {tokens:,} tokens", _remedy(options)
        ) from fault


def out_of_memory(fault: BaseException) -> bool:
    """True for what torch and Python raise where memory runs out."""
    if isinstance(fault, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(fault, RuntimeError) and any(words in str(fault) for words in _CPU_ALLOCATOR)


def _remedy(options: TrainOptions) -> str:
    if not options.activation_checkpointing:
        return "try `activation_checkpointing=True`"
    if not options.recipe.bf16:
        return "try `bf16=True`, or more ranks"
    return "use more ranks, or a smaller `pack(capacity)`"
