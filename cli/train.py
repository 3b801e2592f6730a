"""`kolibri-sft train`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from sft_toolkit.choices import OrderName, Report, Schedule
from sft_toolkit.cli.console import print_table, print_warning
from sft_toolkit.cli.guard import guarded
from sft_toolkit.cli.model_options import require_torch
from sft_toolkit.cli.options import Config, Debug, Quiet, Seed
from sft_toolkit.errors import UsageError

if TYPE_CHECKING:
    from sft_toolkit.training.estimate import Estimate

_RECIPE, _SPEED, _WATCH = "Recipe", "Speed and memory", "Checkpoints and reports"

_REPORTS = "|".join(get_args(Report))


def _recipe(text: str, names: tuple[str, ...] = (), **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=_RECIPE, **more)


def _speed(text: str, **more: Any) -> Any:
    return typer.Option(help=text, rich_help_panel=_SPEED, **more)


def _watch(text: str, names: tuple[str, ...] = (), **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=_WATCH, **more)


@guarded
def train(
    packed: Annotated[Path, typer.Argument(metavar="PACKED", help="Folder of packed shards.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the run.")],
    model: Annotated[Path | None, typer.Option(help="Checkpoint to start from: a folder, or FILE.gguf.")] = None,
    init: Annotated[
        Path | None, typer.Option(help="Model configuration, to start from random weights instead.")
    ] = None,
    tokenizer: Annotated[Path | None, typer.Option(help="Folder of the tokenizer, if not the model's.")] = None,
    nproc: Annotated[int, typer.Option(help="Ranks to start on this machine.", min=1)] = 1,
    steps: Annotated[int | None, _recipe("Optimiser steps, instead of epochs.", min=1)] = None,
    epochs: Annotated[int, _recipe("Passes over the sequences.", min=1)] = 1,
    microbatches: Annotated[
        int,
        _recipe(
            "Gradient accumulation steps: sequences of each rank per optimiser step.",
            names=("--microbatches", "--gradient-accumulation-steps"),
            min=1,
        ),
    ] = 1,
    order: Annotated[OrderName, _recipe("Of the sequences; auto: the most efficient that stays random.")] = "auto",
    buffer: Annotated[int, _recipe("Sequences per rank that are sorted together.", min=1)] = 256,
    learning_rate: Annotated[float, _recipe("Peak learning rate.")] = 2e-5,
    min_learning_rate: Annotated[float, _recipe("What the learning rate falls to.", min=0)] = 0.0,
    schedule: Annotated[Schedule, _recipe("How the learning rate falls.")] = "cosine",
    warmup_ratio: Annotated[
        float,
        _recipe("Share of the steps in which the learning rate rises.", names=("--warmup-ratio", "--warmup")),
    ] = 0.03,
    decay_ratio: Annotated[
        float, _recipe("Share of the steps in which it falls, with wsd.", names=("--decay-ratio", "--decay"))
    ] = 0.2,
    betas: Annotated[tuple[float, float], _recipe("AdamW betas.")] = (0.9, 0.95),
    eps: Annotated[float, _recipe("AdamW eps.")] = 1e-8,
    weight_decay: Annotated[float, _recipe("AdamW weight decay, of matrices only.", min=0)] = 0.1,
    max_grad_norm: Annotated[
        float, _recipe("Max grad norm: gradients are clipped to it.", names=("--max-grad-norm", "--clip"))
    ] = 1.0,
    drop_last: Annotated[bool, _recipe("Leave out the last step of an epoch where it lacks sequences.")] = False,
    lora_rank: Annotated[int, _recipe("Train low-rank adapters (LoRA) of this rank alone; 0: all weights.", min=0)] = 0,
    lora_alpha: Annotated[float, _recipe("Adapters are scaled by alpha / rank.")] = 32.0,
    lora_targets: Annotated[
        list[str] | None,
        _recipe("Layers with an adapter, by the end of their name; by default all linear ones. Repeatable."),
    ] = None,
    adapter_only: Annotated[bool, _recipe("Export the adapter, not a merged model.")] = False,
    extend: Annotated[
        Path | None,
        _recipe("A run, or one of its checkpoints, whose weights and optimizer states this run begins with."),
    ] = None,
    weights_only: Annotated[bool, _recipe("With --extend: take the weights alone.")] = False,
    seed: Seed = 0,
    bf16: Annotated[bool | None, _speed("Compute in bfloat16; by default on CUDA.")] = None,
    activation_checkpointing: Annotated[
        bool, _speed("Activation checkpointing: less memory, a second forward pass.")
    ] = False,
    compile: Annotated[bool, _speed("Compile each layer.")] = False,
    context: Annotated[
        int, _speed("Context parallelism: ranks that share a sequence; divides ranks and attention heads.", min=1)
    ] = 1,
    replicas: Annotated[
        int,
        _speed("Hybrid sharding (HSDP): copies of the states, each sharded over a part of the ranks.", min=1),
    ] = 1,
    checkpoint_every: Annotated[int, _watch("Steps between checkpoints; 0: only at the end.", min=0)] = 0,
    keep: Annotated[int, _watch("Checkpoints to keep, the newest ones.", min=1)] = 2,
    validation: Annotated[
        list[str] | None,
        _watch(
            "Validation set: a packed folder, only evaluated; as NAME=PACKED one of several. Repeatable.",
            names=("--validation", "--evaluation"),
            metavar="[NAME=]PACKED",
        ),
    ] = None,
    validate_every: Annotated[
        int,
        _watch("Steps between evaluations; 0: only at the end.", names=("--validate-every", "--evaluate-every"), min=0),
    ] = 0,
    report: Annotated[list[str] | None, _watch("Besides metrics.jsonl. Repeatable.", metavar=_REPORTS)] = None,
    profile: Annotated[int, _watch("Steps that torch's profiler traces, after the first.", min=0)] = 0,
    resume: Annotated[bool, _watch("Resume from the newest checkpoint.")] = False,
    checksums: Annotated[bool, _watch("Read all shards first and compare their checksums.")] = True,
    check_export: Annotated[
        bool | None,
        _watch("Evaluate the exported model with plain transformers; by default up to 3 B parameters."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("-n", "--dry-run", help="Report parameters, steps and memory; load and train nothing.")
    ] = False,
    config: Config = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a causal language model on packed shards with FSDP, documents kept apart, to the exact mean loss."""
    from sft_toolkit.training.options import ModelSource, Recipe, TrainOptions

    options = TrainOptions(
        packed=packed,
        output=output,
        source=ModelSource(model, init, tokenizer),
        recipe=Recipe(
            steps=steps,
            epochs=epochs,
            microbatches=microbatches,
            order=order,
            buffer=buffer,
            seed=seed,
            learning_rate=learning_rate,
            min_learning_rate=min_learning_rate,
            schedule=schedule,
            warmup_ratio=warmup_ratio,
            decay_ratio=decay_ratio,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            max_grad_norm=max_grad_norm,
            drop_last=drop_last,
            lora_rank=lora_rank,
            lora_alpha=lora_alpha,
            lora_targets=tuple(lora_targets or ("all-linear",)),
            bf16=bool(bf16),
        ),
        activation_checkpointing=activation_checkpointing,
        compile=compile,
        context=context,
        replicas=replicas,
        checkpoint_every=checkpoint_every,
        keep=keep,
        validation=_validation_sets(validation or []),
        profile=profile,
        validate_every=validate_every,
        reports=tuple(report or ()),
        checksums=checksums,
        check_export=check_export,
        adapter_only=adapter_only,
        resume=resume,
        extend=extend,
        weights_only=weights_only,
        quiet=quiet,
    )
    require_torch()
    os.environ.setdefault("TQDM_DISABLE", "1")  # or transformers draws a progress bar while it reads a GGUF file
    from sft_toolkit.training.launch import launch, launched

    if bf16 is None and _on_cuda():
        options = replace(options, recipe=replace(options.recipe, bf16=True))
    if dry_run:
        from sft_toolkit.training.estimate import estimate

        _print_estimate(estimate(options, nproc), nproc)
        return
    if nproc > 1 and not launched():
        raise typer.Exit(launch(nproc))
    from sft_toolkit.training.train import train as run

    run(options, print_warning)


def _validation_sets(given: list[str]) -> dict[str, Path]:
    """Folders by name; a single one needs none. Raises UsageError."""
    found: dict[str, Path] = {}
    for text in given:
        name, _, path = text.rpartition("=")
        if Path(text).exists():
            name, path = "", text
        if name in found or (len(given) > 1 and not name):
            raise UsageError(f"--validation {text}: several need a name each", "as in --validation math=packed/")
        found[name] = Path(path)
    return found


def _on_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


def _print_estimate(found: Estimate, ranks: int) -> None:
    memory = found.memory
    rows = [
        ("parameters", f"{found.parameters:,}"),
        ("sequences", f"{found.sequences:,}"),
        ("steps", f"{found.steps:,}"),
        ("tokens", f"{found.tokens:,}"),
        ("loss tokens", f"{found.loss_tokens:,}"),
        ("work", f"{found.flops:.3g} FLOPs"),
        ("documents", f"one after the other, which is slower: {found.apart}" if found.apart else "packed"),
        *(("  costliest", f"{name}: {tokens:,} tokens") for name, tokens in found.longest),
        ("order", found.order),
        ("  efficiency", f"{found.efficiency:.3f}"),
        ("  design effect (1: random batches)", f"{found.deff:.2f}"),
        ("memory of a rank: about", _gib(memory.total)),
        ("  weights, gradients, AdamW", _gib(memory.states)),
        ("  gathered layers", _gib(memory.gathered)),
        ("  activations", _gib(memory.activations)),
        ("  output head", _gib(memory.head)),
    ]
    print_table(f"{ranks} {'rank' if ranks == 1 else 'ranks'}", ("what", "value"), rows, sys.stdout)


def _gib(count: float) -> str:
    return f"{count / 2**30:,.2f} GiB"
