"""The training loop: a step is a pure function of the state and the step's number.

The loss of a step is the mean over its trained tokens, all ranks' and all microbatches', so it does not depend on how
they are spread: with N trained tokens in the step, every microbatch adds (sum of its losses) / N, gradients are reduced
as a plain sum, and N comes from the index before any token is read.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import AdamW

from sft_toolkit.errors import ToolkitError
from sft_toolkit.packers import FILLER
from sft_toolkit.training.checkpoints import Checkpoints
from sft_toolkit.training.evaluation import Evaluation
from sft_toolkit.training.faults import memory_explained
from sft_toolkit.training.flops import peak_flops
from sft_toolkit.training.model import PackedModel
from sft_toolkit.training.options import Recipe, TrainOptions
from sft_toolkit.training.order import Figures, Order
from sft_toolkit.training.processes import Ranks
from sft_toolkit.training.profiling import peak_memory, profiled
from sft_toolkit.training.reader import Reader
from sft_toolkit.training.reports import Report
from sft_toolkit.training.schedule import rate_share
from sft_toolkit.training.stopping import StopRequest

_SHOWN_IDS = 20


class Trainer:
    """Trains `model` up to step `steps`; all methods are collective.

    figures: what the sequences that `reader` reads come to
    """

    def __init__(
        self, options: TrainOptions, ranks: Ranks, model: PackedModel, reader: Reader, order: Order, figures: Figures
    ) -> None:
        self._options = options
        self._recipe = options.recipe
        self._ranks = ranks
        self._model = model
        self._reader = reader
        self._order = order
        self._figures = figures
        self._optimizer = _adamw(model, options.recipe)
        self._peak = peak_flops(ranks.device)
        self.steps = options.recipe.steps or options.recipe.epochs * order.steps_per_epoch
        self.done = 0

    def resume(self, checkpoints: Checkpoints, step: int) -> None:
        """Resume from the checkpoint of `step`."""
        checkpoints.load(step, self._model, self._optimizer)
        self.done = step

    def extend(self, checkpoints: Checkpoints, step: int, *, weights_only: bool) -> None:
        """Begin with what another run had learned at `step`."""
        checkpoints.load(step, self._model, self._optimizer, weights_only=weights_only)

    def run(self, checkpoints: Checkpoints, reports: Sequence[Report], evaluation: Evaluation | None) -> None:
        """Train to the end. After SIGTERM or SIGINT to any rank: finish the step, save, raise SystemExit(128 + it)."""
        trace = profiled(self._options.output / "profile", self._ranks.rank, self._options.profile)
        with StopRequest() as stop, checkpoints, trace as stepped:
            while self.done < self.steps and not stop.signal:
                _log(reports, self._step(stop))
                stepped()
                if evaluation and self._is_due(self._options.validate_every):
                    _log(reports, {"step": self.done, **evaluation.run(self._model)})
                if stop.signal or self._is_due(self._options.checkpoint_every):
                    checkpoints.save(self.done, self._model, self._optimizer)
        if stop.signal:
            raise SystemExit(128 + stop.signal)

    def _is_due(self, every: int) -> bool:
        return self.done == self.steps or (every > 0 and self.done % every == 0)

    def _step(self, stop: StopRequest) -> dict[str, Any]:
        """One optimiser step; returns its figures, and leaves in `stop` what any rank was asked."""
        begin = time.perf_counter()
        sequences = self._order.step(self.done)
        rate = self._rate()
        losses = self._backward(sequences)
        total, by_dataset = self._sum_over_ranks(sequences, losses, stop)
        loss = total / max(1, self._figures.loss_tokens(sequences))
        gradient_norm = self._clip()
        if not (math.isfinite(loss) and math.isfinite(gradient_norm)):
            raise self._not_finite(sequences, losses)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.done += 1
        learned = {"step": self.done, "loss": loss, "grad_norm": gradient_norm, "learning_rate": rate}
        of_datasets = self._of_datasets(sequences, by_dataset)
        return learned | self._account(sequences, time.perf_counter() - begin) | of_datasets

    def _rate(self) -> float:
        recipe = self._recipe
        shares = recipe.warmup_ratio, recipe.decay_ratio, recipe.min_learning_rate / recipe.learning_rate
        return recipe.learning_rate * rate_share(recipe.schedule, self.done, self.steps, *shares)

    def _backward(self, sequences: NDArray[np.int64]) -> Tensor:
        """Add up the gradients of this rank's sequences; returns their summed losses: float64[microbatches]."""
        loss_tokens = max(1, self._figures.loss_tokens(sequences))
        own = sequences[:, self._ranks.reader].tolist()
        losses = torch.zeros(len(own), dtype=torch.float64, device=self._ranks.device)
        for place, number in enumerate(own):
            batch = self._reader.batch(number)
            with memory_explained(self.done + 1, batch, self._options):
                loss = self._model(batch)
                (loss / loss_tokens).backward()
            losses[place] = loss.detach()
        return losses

    def _sum_over_ranks(
        self, sequences: NDArray[np.int64], losses: Tensor, stop: StopRequest
    ) -> tuple[float, list[float]]:
        """The summed losses of the step, and those of each data set."""
        spread = self._figures.by_dataset(sequences[:, self._ranks.reader], losses.cpu().numpy())
        shared = torch.cat([losses.sum()[None], stop.flags().to(losses), torch.from_numpy(spread).to(losses)])
        dist.all_reduce(shared)
        loss, *rest = shared.tolist()
        count = len(stop.flags())
        stop.heed(rest[:count])
        return loss, rest[count:]

    def _of_datasets(self, sequences: NDArray[np.int64], losses: list[float]) -> dict[str, Any]:
        """Loss and tokens of each data set that the step has tokens of."""
        tokens = self._figures.tokens_by_dataset(sequences)
        trained = self._figures.loss_tokens_by_dataset(sequences)
        found: dict[str, Any] = {}
        for name, loss, count, weight in zip(self._figures.datasets, losses, tokens, trained, strict=True):
            if weight:
                found[f"loss/{name}"] = float(loss / weight)
            if count:
                found[f"tokens/{name}"] = int(count)
        return found

    def _clip(self) -> float:
        """Scale gradients down to the greatest norm allowed; returns the norm before."""
        norm = nn.utils.clip_grad_norm_(self._model.parameters(), self._recipe.max_grad_norm)
        return norm.full_tensor().item()

    def _account(self, sequences: NDArray[np.int64], seconds: float) -> dict[str, Any]:
        tokens = self._figures.tokens(sequences)
        flops_per_rank = self._figures.flops(sequences) / seconds / self._ranks.count
        return {
            "loss_tokens": self._figures.loss_tokens(sequences),
            "tokens": tokens,
            "seconds": seconds,
            "tokens_per_second": tokens / seconds,
            "tflops_per_rank": flops_per_rank / 1e12,
            "mfu": flops_per_rank / self._peak if self._peak else None,
            "imbalance": self._figures.imbalance(sequences),
            "peak_memory_gib": peak_memory(self._ranks.device) / 2**30,
        }

    def _not_finite(self, sequences: NDArray[np.int64], losses: Tensor) -> ToolkitError:
        """Name the documents of the sequences whose loss is not finite, on whatever rank, else of the whole step."""
        own = sequences[:, self._ranks.reader].tolist()
        guilty = [n for n, finite in zip(own, losses.isfinite().tolist(), strict=True) if not finite and n != FILLER]
        gathered: list[list[int]] = [[] for _ in range(self._ranks.count)]
        dist.all_gather_object(gathered, guilty)
        named = [*dict.fromkeys(number for part in gathered for number in part)] or sequences[
            sequences != FILLER
        ].tolist()
        ids = [name for number in named for name in self._reader.packed.sequence(number).ids]
        more = f" and {len(ids) - _SHOWN_IDS} more" if len(ids) > _SHOWN_IDS else ""
        return ToolkitError(
            f"step {self.done + 1}: loss or gradient is not finite; documents: {', '.join(ids[:_SHOWN_IDS])}{more}",
            "nothing of this step was kept: look at these, or lower `learning_rate`, then continue with `resume=True`",
        )


def _adamw(model: PackedModel, recipe: Recipe) -> AdamW:
    parameters = [one for one in model.parameters() if one.requires_grad]
    groups = [
        {"params": [one for one in parameters if one.ndim >= 2], "weight_decay": recipe.weight_decay},
        {"params": [one for one in parameters if one.ndim < 2], "weight_decay": 0.0},
    ]
    return AdamW(groups, lr=recipe.learning_rate, betas=recipe.betas, eps=recipe.eps, foreach=True)


def _log(reports: Sequence[Report], row: dict[str, Any]) -> None:
    for report in reports:
        report.write(row)
