"""Packed shards for other trainers: a torch dataset in the order of a plan, and its collation for transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from sft_toolkit.packers import plan_for
from sft_toolkit.training.batch import model_inputs
from sft_toolkit.training.sequences import PackedFolder

IGNORED = -100


class PackedShards(Dataset[dict[str, Tensor]]):
    """Packed sequences in planned order: `[epochs, steps, microbatches, ranks]`, flattened.

    Read it sequentially, one sequence a batch. Where rank r of R takes the places r, r + R, r + 2R … (as accelerate and
    DistributedSampler without shuffling deal them), every microbatch has sequences of about equal cost on all ranks.
    An item holds input_ids int64[T], labels int64[T] (-100 where not trained), lengths int32[D], tokens per document.
    Where the last step of an epoch lacks sequences, an item is one token without loss.

    Raises ToolkitError for a folder that is unfit, ValueError for an order that does not exist.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        ranks: int = 1,
        microbatches: int = 1,
        epochs: int = 1,
        order: str = "window",
        buffer: int = 256,
        seed: int = 0,
    ) -> None:
        self._packed = PackedFolder(folder)
        self._plan = plan_for(order, self._packed.index.cost, ranks, microbatches, buffer=buffer, seed=seed)
        self._epochs = epochs

    def __len__(self) -> int:
        return self._epochs * self._plan.steps * self._plan.step_size

    def __getitem__(self, place: int) -> dict[str, Tensor]:
        if not 0 <= place < len(self):
            raise IndexError(f"place {place} is outside a plan of {len(self)}")
        step, within = divmod(place, self._plan.step_size)
        epoch, step = divmod(step, self._plan.steps)
        sequence = self._packed.sequence(int(self._plan.step(epoch, step).flat[within]))
        labels = np.where(sequence.loss_mask, sequence.input_ids, IGNORED)
        return {
            "input_ids": torch.from_numpy(sequence.input_ids.astype(np.int64)),
            "labels": torch.from_numpy(labels.astype(np.int64)),
            "lengths": torch.from_numpy(sequence.lengths),
        }


def collate_packed(items: list[dict[str, Tensor]]) -> dict[str, Any]:
    """Items of PackedShards end to end in one row, as a model with variable-length attention takes them.

    Returns input_ids, position_ids, labels: int64[1, T], cu_seq_lens_q and _k: int32[D + 1], max_length_q and _k. There
    is no attention mask, on purpose: transformers would attend by the mask and across documents.
    """
    joined = {name: torch.cat([item[name] for item in items]) for name in ("input_ids", "labels", "lengths")}
    return {**model_inputs(joined["input_ids"], joined["lengths"].numpy()), "labels": joined["labels"][None]}
