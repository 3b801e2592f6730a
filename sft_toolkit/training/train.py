"""A training run, as each of its ranks goes through it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import torch
import torch.distributed as dist
from transformers import PreTrainedConfig
from transformers.utils import logging

from sft_toolkit.choices import OrderName
from sft_toolkit.draws import key
from sft_toolkit.errors import UsageError
from sft_toolkit.packers import AUTO, OrderChoice, Plan, choose_order, plan_for
from sft_toolkit.training.checkpoints import Checkpoints, complete_steps
from sft_toolkit.training.evaluation import Evaluation
from sft_toolkit.training.export import export
from sft_toolkit.training.export_check import CHECKED_PARAMETERS, first_documents
from sft_toolkit.training.extension import Extension
from sft_toolkit.training.flops import Flops
from sft_toolkit.training.isolation import require_no_dropout
from sft_toolkit.training.loading import load_checked
from sft_toolkit.training.model import PackedModel, read_config
from sft_toolkit.training.options import Recipe, TrainOptions
from sft_toolkit.training.order import Figures, Order
from sft_toolkit.training.processes import Ranks, joined_ranks
from sft_toolkit.training.reader import Reader
from sft_toolkit.training.rendering_check import rendering_warnings
from sft_toolkit.training.reports import Report, open_reports
from sft_toolkit.training.sequences import PackedFolder
from sft_toolkit.training.trainer import Trainer
from sft_toolkit.training.training_folder import PINS, RunFolder, pins_of
from sft_toolkit.visible import visible


def _print_warning(text: str) -> None:
    print(visible(f"warning: {text}"), file=sys.stderr)


def _ignore(text: str) -> None:
    """What a rank that does not lead has to say is said by the one that does."""


def train(options: TrainOptions, warn: Callable[[str], None] = _print_warning) -> None:
    """Train on all ranks that a launcher started, else in this process, and export the model.

    `warn` is called with each sentence about what is odd but no error, unless the options say quiet.
    Raises UsageError and ToolkitError on the first rank that meets the fault, SystemExit on the others, and
    SystemExit(143) or (130) after SIGTERM or SIGINT, once the state is saved.
    """
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    with joined_ranks(options.context, options.replicas) as ranks, ExitStack() as held:
        config = read_config(options.source)
        require_no_dropout(config)
        reader = _open(options.packed, config, ranks, options.checksums)
        extension = None
        if options.extend:
            extension = Extension.of(options.extend, PINS, weights_only=options.weights_only)
        folder = RunFolder(options.output, pins_of(options.recipe, reader.packed, config, extension))
        if ranks.leads:
            held.enter_context(folder.lock())
        heard = warn if ranks.leads and not options.quiet else _ignore
        if heard is warn:
            for warning in rendering_warnings(options.packed, options.source):
                warn(warning)
        model = _train(options, config, ranks, folder, reader, extension, heard)
        checked = None
        if wants_check(options, model):
            checked = first_documents(PackedFolder(next(iter(options.validation.values()), options.packed)))
        export(model, config, options, folder.model, ranks, checked)
        if ranks.leads and not options.quiet:
            print(visible(f"model -> {folder.model}"), file=sys.stderr)


def wants_check(options: TrainOptions, model: PackedModel) -> bool:
    """Whether the exported model is evaluated by plain transformers."""
    if options.check_export is not None:
        return options.check_export
    return sum(one.numel() for one in model.parameters()) <= CHECKED_PARAMETERS


def require_work_for_all(packed: PackedFolder, ranks: int) -> None:
    """Raise UsageError where there are fewer sequences than ranks: one of them would only wait; or none has a loss."""
    if not packed.index.loss_tokens.any():
        raise UsageError(f"{packed.path}: no token has a loss", "nothing would be learned: look at the loss mask")
    if len(packed) < ranks:
        raise UsageError(f"{packed.path}: {len(packed)} sequences for {ranks} ranks", "use fewer ranks")


def order_choice(recipe: Recipe, packed: PackedFolder, ranks: int) -> OrderChoice:
    """What `--order auto` takes: a function of the index, the recipe and the ranks that the run began with."""
    index = packed.index
    return choose_order(index.tokens, index.cost, ranks, recipe.microbatches, buffer=recipe.buffer, seed=recipe.seed)


def order_of(recipe: Recipe, packed: PackedFolder, ranks: int) -> OrderName:
    """The name of the order that the recipe means for these sequences."""
    chosen = order_choice(recipe, packed, ranks).order if recipe.order == AUTO else recipe.order
    return cast(OrderName, chosen)


def plan_of(recipe: Recipe, packed: PackedFolder, ranks: int) -> Plan:
    """The plan that a run begins with on `ranks` ranks."""
    order = order_of(recipe, packed, ranks)
    return plan_for(order, packed.index.cost, ranks, recipe.microbatches, buffer=recipe.buffer, seed=recipe.seed)


def _train(
    options: TrainOptions,
    config: PreTrainedConfig,
    ranks: Ranks,
    folder: RunFolder,
    reader: Reader,
    extension: Extension | None,
    warn: Callable[[str], None],
) -> PackedModel:
    recipe = options.recipe
    require_work_for_all(reader.packed, ranks.readers)
    planned_ranks, done = _beginning(ranks, folder, options.resume)
    if ranks.leads and not options.quiet and recipe.order == AUTO:
        print(visible(f"order {order_choice(recipe, reader.packed, planned_ranks)}"), file=sys.stderr)
    plan = plan_of(recipe, reader.packed, planned_ranks)
    read = extension.steps_read(folder.pins, planned_ranks) if extension else 0
    order = Order(plan, ranks.readers, whole=recipe.drop_last, first=read)
    evaluated = {name: _open(path, config, ranks, options.checksums) for name, path in options.validation.items()}
    model = load_checked(options, config, ranks, warn)
    if model.unread:
        warn(
            f"{options.source.path}: transformers does not read {len(model.unread)} tensors ({model.unread[0]} …): "
            "they are not trained, and will lie in the exported model as they were"
        )
    torch.manual_seed(key(recipe.seed, "rank", ranks.rank))
    figures = Figures(reader.packed.index, Flops.of(model.causal_lm).of_sequences(reader.packed))
    trainer = Trainer(options, ranks, model, reader, order, figures)
    checkpoints = Checkpoints(folder.checkpoints, ranks, options.keep)
    if done:
        trainer.resume(checkpoints, done)
    elif extension:
        trainer.extend(Checkpoints(extension.folder, ranks, 1), extension.step, weights_only=extension.weights_only)
    reports: list[Report] = []
    if ranks.leads:
        folder.pin(planned_ranks, read)
        reports = open_reports(options, trainer.done, trainer.steps)
    try:
        trainer.run(checkpoints, reports, Evaluation(evaluated, ranks) if evaluated else None)
    finally:
        for report in reports:
            report.close()
    return model


def _open(path: Path, config: PreTrainedConfig, ranks: Ranks, checksums: bool) -> Reader:
    """A packed folder that the model can take; its shards' checksums are shared out over the ranks."""
    packed = PackedFolder(path)
    if checksums:
        packed.verify(range(ranks.rank, len(packed.folder.paths), ranks.count))
    reader = Reader.of(packed, config, ranks.device, ranks.rank % ranks.context, ranks.context)
    reader.require_fitting_documents()
    return reader


def _beginning(ranks: Ranks, folder: RunFolder, resume: bool) -> tuple[int, int]:
    """The ranks that the plan is made for, and the steps that are done; one rank looks into the folder for all."""
    found = [0, 0]
    if ranks.leads:
        done = max(complete_steps(folder.checkpoints), default=0) if resume else 0
        found = [folder.planned_ranks(ranks.readers, resume=resume), done]
    dist.broadcast_object_list(found, src=0, group=ranks.background)
    return found[0], found[1]
