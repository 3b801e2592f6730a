"""The loss on sequences that are not trained: the mean over all their loss tokens, shared out over the ranks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
import torch.distributed as dist

from sft_toolkit.packers import FILLER
from sft_toolkit.training.model import PackedModel, without_gradients
from sft_toolkit.training.processes import Ranks
from sft_toolkit.training.reader import Reader


class Evaluation:
    """readers: validation sets by name; a set without a name counts in the mean alone"""

    def __init__(self, readers: Mapping[str, Reader], ranks: Ranks) -> None:
        self._sets = {name: _Set(reader, ranks) for name, reader in readers.items()}

    def run(self, model: PackedModel) -> dict[str, float]:
        """The mean over all sets, and each set's own, for a report; collective. Leaves `model` in training mode."""
        with without_gradients(model):
            sums = {name: one.summed_loss(model) for name, one in self._sets.items()}
        counts = {name: one.loss_tokens for name, one in self._sets.items()}
        found = {
            "eval_loss": sum(sums.values()) / max(1, sum(counts.values())),
            "eval_loss_tokens": sum(counts.values()),
        }
        return found | {f"eval_loss/{name}": sums[name] / max(1, counts[name]) for name in sums if name}


class _Set:
    def __init__(self, reader: Reader, ranks: Ranks) -> None:
        sequences = np.arange(len(reader.packed))
        filler = np.full(-len(sequences) % ranks.readers, FILLER)
        self._own = np.append(sequences, filler)[ranks.reader :: ranks.readers].tolist()
        self._reader = reader
        self.loss_tokens = int(reader.packed.index.loss_tokens.sum(dtype=np.int64))

    def summed_loss(self, model: PackedModel) -> float:
        total = torch.zeros((), dtype=torch.float64, device=self._reader.device)
        for number in self._own:
            total += model(self._reader.batch(number))
        dist.all_reduce(total)
        return total.item()
