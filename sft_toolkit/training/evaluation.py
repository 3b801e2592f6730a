"""The loss on sequences that are not trained: the mean over all their loss tokens, shared out over the ranks."""

from __future__ import annotations

import numpy as np
import torch
import torch.distributed as dist

from sft_toolkit.packers import FILLER
from sft_toolkit.training.model import PackedModel, without_gradients
from sft_toolkit.training.processes import Ranks
from sft_toolkit.training.reader import Reader


class Evaluation:
    def __init__(self, reader: Reader, ranks: Ranks) -> None:
        sequences = np.arange(len(reader.packed))
        filler = np.full(-len(sequences) % ranks.readers, FILLER)
        self._own = np.append(sequences, filler)[ranks.reader :: ranks.readers].tolist()
        self._loss_tokens = int(reader.packed.index.loss_tokens.sum(dtype=np.int64))
        self._reader = reader

    def run(self, model: PackedModel) -> dict[str, float]:
        """Figures for a report; collective. Leaves the model in training mode."""
        total = torch.zeros((), dtype=torch.float64, device=self._reader.device)
        with without_gradients(model):
            for number in self._own:
                total += model(self._reader.batch(number))
        dist.all_reduce(total)
        return {"eval_loss": total.item() / max(1, self._loss_tokens), "eval_loss_tokens": self._loss_tokens}
