"""What a run would take, before anything is loaded: `train --dry-run`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sft_toolkit.errors import UsageError
from sft_toolkit.packers.balance import balance_of
from sft_toolkit.training.flops import Flops
from sft_toolkit.training.isolation import expected_fault, require_no_dropout
from sft_toolkit.training.lora import add_adapters
from sft_toolkit.training.loss import LOGITS_PER_CHUNK
from sft_toolkit.training.model import empty_model, layers_of, read_config, text_config
from sft_toolkit.training.options import TrainOptions
from sft_toolkit.training.order import steps_of_epoch
from sft_toolkit.training.sequences import PackedFolder
from sft_toolkit.training.shapes import head_width, option, size
from sft_toolkit.training.train import order_of, plan_of, require_work_for_all

_WEIGHT_BYTES, _LEARNING_BYTES = 4, 4 + 8
"""Of a parameter in float32, and of the gradient and AdamW's two averages of one that is trained."""


_SHOWN = 3
"""Costly documents that are named."""
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
"""What configurations call the number of experts."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on each rank, at the longest sequence. States and layers are exact, activations a rule of thumb."""

    states: float
    gathered: float
    activations: float
    head: float

    @property
    def total(self) -> float:
        return self.states + self.gathered + self.activations + self.head


@dataclass(frozen=True, slots=True)
class Estimate:
    """tokens, loss_tokens, flops: of the whole run; efficiency: mean over slowest rank, by FLOPs, of the first epoch;
    deff: design effect of its steps, as `packers.balance.Balance` says
    apart: why documents will go through the model one after the other; None where they will not, or it is not known
    longest: name and tokens of the longest documents of the costliest sequences
    """

    parameters: int
    sequences: int
    steps: int
    tokens: int
    loss_tokens: int
    flops: float
    order: str
    efficiency: float
    deff: float
    memory: Memory
    apart: str | None
    longest: list[tuple[str, int]]


def estimate(options: TrainOptions, ranks: int) -> Estimate:
    """Raises ToolkitError and UsageError for data or a model that training would refuse for the same reason."""
    recipe, packed = options.recipe, PackedFolder(options.packed)
    for name, parts in (("context", options.context), ("replicas", options.replicas)):
        if ranks % parts:
            raise UsageError(f"`{name}` {parts}: does not divide {ranks} ranks")
    readers = ranks // options.context
    config = read_config(options.source)
    require_no_dropout(config)
    require_work_for_all(packed, readers)
    model = empty_model(config, attention=None)
    flops = Flops.of(model)
    if recipe.lora_rank:
        add_adapters(model, recipe)
    work = flops.of_sequences(packed)
    order = order_of(recipe, packed, readers)
    plan = plan_of(replace(recipe, order=order), packed, readers)
    epoch = plan.epoch(0)[: steps_of_epoch(plan, whole=recipe.drop_last)]
    steps = recipe.steps or recipe.epochs * len(epoch)
    share = steps / len(epoch)
    tokens, loss_tokens = (
        float(column.sum(dtype=np.int64)) for column in (packed.index.tokens, packed.index.loss_tokens)
    )
    attention = 1 - float((flops.per_token * tokens + flops.per_trained_token * loss_tokens) / work.sum())
    balance = balance_of(epoch, packed.index.tokens, packed.index.cost, attention_share=attention)
    return Estimate(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        sequences=len(packed),
        steps=steps,
        tokens=round(share * tokens),
        loss_tokens=round(share * loss_tokens),
        flops=share * float(work.sum()),
        order=order,
        efficiency=balance.efficiency,
        deff=balance.deff,
        memory=memory_of(model, options, -(-int(packed.index.tokens.max()) // options.context), ranks),
        apart=expected_fault(config),
        longest=_longest_documents(packed),
    )


def _longest_documents(packed: PackedFolder) -> list[tuple[str, int]]:
    found = []
    for number in np.argsort(-packed.index.cost, kind="stable")[:_SHOWN].tolist():
        sequence = packed.sequence(number)
        longest = int(sequence.lengths.argmax())
        found.append((sequence.ids[longest], int(sequence.lengths[longest])))
    return found


def memory_of(model: Any, options: TrainOptions, tokens: int, ranks: int) -> Memory:
    """What training a model takes of each rank at sequences of `tokens` tokens."""
    config, width = text_config(model.config), 2 if options.recipe.bf16 else 4
    layers = layers_of(model)
    layer = sum(parameter.numel() for parameter in layers[0].parameters())
    parameters = sum(parameter.numel() for parameter in model.parameters())
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    head = model.get_output_embeddings().weight.numel()
    within = tokens * _activations_per_token(config) * width
    kept = tokens * config.hidden_size * width
    return Memory(
        states=(_WEIGHT_BYTES * parameters + _LEARNING_BYTES * trained) / (ranks // options.replicas),
        gathered=(parameters - len(layers) * layer + 2 * layer) * width,
        activations=len(layers) * kept + within if options.activation_checkpointing else len(layers) * within,
        head=4 * head + min(LOGITS_PER_CHUNK, tokens * config.vocab_size) * (4 + width),
    )


def _activations_per_token(config: Any) -> int:
    """Numbers that one layer keeps of a token for the way back.

    Three for each norm; of queries and keys as they are projected, normed, scaled and turned; of the values, of
    attention's result and its copy; four for the gated feed-forward. Of a mixture of experts the four for each of the k
    that a token meets, and its states besides: once as each of them reads them, once as each gives them back, and once
    more where experts are computed one by one; scores of all experts, twice.
    """
    heads = option(config, "num_attention_heads", 1)
    groups = option(config, "num_key_value_heads", heads)
    attention = head_width(config) * (6 * heads + 5 * groups)
    dense = size(config, "intermediate_size") or size(config, "n_inner") or 4 * config.hidden_size
    return round(6 * config.hidden_size + attention + (_of_experts(config, dense) or 4 * dense))


def _of_experts(config: Any, dense: float) -> float:
    """What `_activations_per_token` says of a mixture of experts; 0 where there is none."""
    met = option(config, "num_experts_per_tok", 0)
    inner = size(config, "moe_intermediate_size", dense)
    shared = size(config, "shared_expert_intermediate_size") or inner * size(config, "n_shared_experts")
    copies = 3 if option(config, "_experts_implementation") == "eager" else 2
    experts = next(filter(None, (size(config, name) for name in _EXPERTS)), 0)
    return met * (copies * config.hidden_size + 4 * inner) + 4 * shared + 2 * experts if met else 0
