"""The held-out loss of finished models, through the code that trains them."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

import torch
from transformers import PreTrainedConfig
from transformers.utils import logging

from sft_toolkit.errors import ToolkitError
from sft_toolkit.mergemix.held_out_set import HeldOutSet
from sft_toolkit.mergemix.score_command import LOSS, Scores
from sft_toolkit.training.batch import Batch
from sft_toolkit.training.faults import out_of_memory
from sft_toolkit.training.isolation import choose_head, packing_fault
from sft_toolkit.training.model import PackedModel, load_whole, read_config, without_gradients
from sft_toolkit.training.options import ModelSource
from sft_toolkit.training.reader import require_known_tokens, turning_alike
from sft_toolkit.training.sequences import PackedSequence


class HeldOutLoss:
    """Scores a model by its mean loss in nats over the loss tokens of each data set, documents kept apart.

    `loss/NAME` is that of a data set, `loss` the mean over the data sets, each counting alike. The model runs on one
    device: in float32 on CPU, in bfloat16 on CUDA. Raises ToolkitError as HeldOutSet does.
    """

    is_loss = True

    def __init__(self, folders: Sequence[Path]) -> None:
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        self._held_out = HeldOutSet(folders)
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    @property
    def name(self) -> str:
        return f"held-out loss on {self._held_out.fingerprint}"

    def run(self, model: Path) -> Scores:
        """Raises ToolkitError where the model cannot be loaded or yields no number."""
        config = read_config(ModelSource(model))
        with _memory_explained(model):
            loaded = self._load(model, config)
            losses = {name: self._mean(loaded, config, name) for name in self._held_out.datasets}
        return {LOSS: fmean(losses.values()), **{f"{LOSS}/{name}": loss for name, loss in losses.items()}}

    def _load(self, path: Path, config: PreTrainedConfig) -> PackedModel:
        """The model, packed where that changes nothing, else with one document after the other."""
        model = load_whole(path, config, self._device)
        _require_finite(model, path)
        if packing_fault(model, device=self._device) is not None:
            model = load_whole(path, config, self._device, apart=True)
        choose_head(model, device=self._device)
        return model.bfloat16() if self._device.type == "cuda" else model  # as its attention takes it

    def _mean(self, model: PackedModel, config: PreTrainedConfig, dataset: str) -> float:
        total = torch.zeros((), dtype=torch.float64, device=self._device)
        with without_gradients(model):
            for sequence in self._held_out.sequences(dataset):
                _require_taken(sequence, config, dataset)
                total += model(Batch.of(sequence, self._device))
        loss = total.item() / self._held_out.loss_tokens[dataset]
        if not math.isfinite(loss):
            raise ToolkitError(f"the loss on {dataset} is {loss}", "look at the weights of the models that were merged")
        return loss


def _require_finite(model: PackedModel, path: Path) -> None:
    for name, parameter in model.causal_lm.named_parameters():
        if not parameter.isfinite().all():
            raise ToolkitError(f"{path}: {name} holds what is not finite", "look at the models that were merged")


def _require_taken(sequence: PackedSequence, config: PreTrainedConfig, dataset: str) -> None:
    """Raise ToolkitError for a document that the model has no tokens or no positions for."""
    require_known_tokens(sequence, config.vocab_size, f"held-out {dataset}")
    positions = min(getattr(config, "max_position_embeddings", sys.maxsize), turning_alike(config))
    longest = int(sequence.lengths.argmax())
    if sequence.lengths[longest] > positions:
        raise ToolkitError(
            f"held-out {dataset}: document {sequence.ids[longest]!r} has {sequence.lengths[longest]} tokens, "
            f"the model takes at most {positions} beside other documents",
            "leave out what is longer, as mix does with where = { length = { max = … } }",
        )


@contextmanager
def _memory_explained(model: Path) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, MemoryError) as fault:
        if not out_of_memory(fault):
            raise
        raise ToolkitError(f"{model}: out of memory", "score it with a `score_command` on more devices") from fault
