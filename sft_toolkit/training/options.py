"""The options of a training run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sft_toolkit.choices import OrderName, Schedule, require_choices
from sft_toolkit.errors import UsageError


@dataclass(frozen=True, slots=True)
class Recipe:
    """What decides the weights that come out, beside model, data and ranks; a resumed run must have the same.

    steps: optimiser steps, by default those of `epochs`; microbatches: gradient accumulation steps,
    sequences of each rank per optimiser step
    order, buffer: see sft_toolkit.packers; "auto" is what `choose_order` takes for the packed index
    warmup_ratio, decay_ratio: shares of the steps
    min_learning_rate: what the learning rate falls to; betas, eps: AdamW's
    max_grad_norm: gradients are clipped to it
    drop_last: leave out the last step of an epoch where it lacks sequences
    lora_rank: of low-rank adapters, 0: all weights are trained; lora_alpha: their scale is lora_alpha / lora_rank;
    lora_targets: names of the layers that get one, or "all-linear": all linear ones but the head
    weight_decay: of matrices alone; bf16: compute in bfloat16, keep weights and sum gradients in float32
    """

    steps: int | None = None
    epochs: int = 1
    microbatches: int = 1
    order: OrderName = "auto"
    buffer: int = 256
    seed: int = 0
    learning_rate: float = 2e-5
    min_learning_rate: float = 0.0
    schedule: Schedule = "cosine"
    warmup_ratio: float = 0.03
    decay_ratio: float = 0.2
    betas: tuple[float, float] = (0.9, 0.95)
    eps: float = 1e-8
    weight_decay: float = 0.1
    max_grad_norm: float = 1.0
    drop_last: bool = False
    lora_rank: int = 0
    lora_alpha: float = 32.0
    lora_targets: tuple[str, ...] = ("all-linear",)
    bf16: bool = False

    def __post_init__(self) -> None:
        require_choices(self)
        shares = (("warmup_ratio", self.warmup_ratio), ("decay_ratio", self.decay_ratio))
        for name, share in (*shares, *(("betas", beta) for beta in self.betas)):
            if not 0 <= share < 1:
                raise UsageError(f"`{name}` {share}: not in [0, 1)")
        for name, rate in (("learning_rate", self.learning_rate), ("max_grad_norm", self.max_grad_norm)):
            if not rate > 0:
                raise UsageError(f"`{name}` {rate}: not above 0")
        if not 0 <= self.min_learning_rate <= self.learning_rate:
            raise UsageError(f"`min_learning_rate` {self.min_learning_rate}: not in 0 … {self.learning_rate}")
        if self.lora_rank < 0:
            raise UsageError(f"`lora_rank` {self.lora_rank}: below 0")
        if not self.eps > 0:
            raise UsageError(f"`eps` {self.eps}: not above 0")
        if self.schedule == "wsd" and self.warmup_ratio + self.decay_ratio > 1:
            given = f"`warmup_ratio` {self.warmup_ratio} and `decay_ratio` {self.decay_ratio}"
            raise UsageError(f"{given} leave no step between them")


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A checkpoint of transformers (a folder, or a GGUF file), or the configuration of a model to start at random.

    tokenizer: folder whose tokenizer and chat template go with the trained model; by default the checkpoint's
    """

    checkpoint: Path | None = None
    init: Path | None = None
    tokenizer: Path | None = None

    def __post_init__(self) -> None:
        if (self.checkpoint is None) == (self.init is None):
            raise UsageError("a model is needed, and one only", "give `model` or `init`")
        for path in filter(None, (self.path, self.tokenizer)):
            if not path.exists():
                raise UsageError(f"{path}: does not exist", "models are read from the disk, not downloaded")

    @property
    def path(self) -> Path:
        path = self.checkpoint or self.init
        assert path is not None
        return path


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """A run. `checkpoint_every`, `validate_every`: steps, 0 for the end alone; `keep`: checkpoints, the newest ones.

    validation: packed folders that are evaluated, not trained, by name: one without a name, or one for each data set
    reports: "tensorboard", "wandb"; profile: steps that torch's profiler traces
    context: ranks that share a sequence; replicas: of the model's states, each sharded over a part of the ranks
    adapter_only: export the adapter alone, not a merged model
    check_export: evaluate the exported model with plain transformers, None: where it is small
    extend: an earlier run, or one of its checkpoints, whose state this one begins with; weights_only: without AdamW's
    """

    packed: Path
    output: Path
    source: ModelSource
    recipe: Recipe = field(default_factory=Recipe)
    activation_checkpointing: bool = False
    compile: bool = False
    context: int = 1
    replicas: int = 1
    checkpoint_every: int = 0
    keep: int = 2
    validation: Mapping[str, Path] = field(default_factory=dict)
    validate_every: int = 0
    reports: tuple[str, ...] = ()
    profile: int = 0
    checksums: bool = True
    check_export: bool | None = None
    adapter_only: bool = False
    resume: bool = False
    extend: Path | None = None
    weights_only: bool = False
    quiet: bool = False

    def __post_init__(self) -> None:
        if self.adapter_only and not (self.recipe.lora_rank and self.source.checkpoint):
            raise UsageError("`adapter_only` exports what `lora_rank` trains beside a `model`")
        if self.weights_only and self.extend is None:
            raise UsageError("`weights_only` says what of an earlier run is taken", "name it with `extend`")
