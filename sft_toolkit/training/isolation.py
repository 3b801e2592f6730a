"""The check at the start that a packed document is trained exactly as it would be alone.

The loaded model runs on a small packed batch, and on each of its documents with the attention that transformers gives
it. Where a layer does not attend through this package (a recurrent state, an attention of its own), where documents see
one another all the same (positions that are not reset), or where the loss is not the plain cross entropy of the head
(soft-capping, a scale, a bias), the run is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedConfig

from sft_toolkit.errors import ToolkitError
from sft_toolkit.packers.shuffling import Shuffler
from sft_toolkit.training.attention import ATTENTION, document_attention, register_attention
from sft_toolkit.training.batch import Batch
from sft_toolkit.training.model import PackedModel, without_gradients
from sft_toolkit.training.sequences import PackedSequence

_LENGTHS = (7, 1, 30, 12)
_LOGITS_TOLERANCE = {False: 1e-4, True: 5e-2}
_LOSS_TOLERANCE = {False: 1e-5, True: 1e-3}
"""Greatest relative differences, without and with bfloat16."""
_DROPOUT = ("attention_dropout", "attn_pdrop")
"""What configurations call it."""
_HINT = "this model cannot be trained packed; train it with one document a sequence, or elsewhere"


@dataclass(frozen=True, slots=True)
class Isolation:
    """Packed beside alone: the greatest difference of a logit, and that of all relative to their norm.

    loss: relative difference between the trained loss and the cross entropy of the packed logits
    """

    logits: float
    relative: float
    loss: float


def require_supported(config: PreTrainedConfig) -> None:
    """Raise ToolkitError for what a configuration says of attention that is not causal over the whole document."""
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or ["sliding_attention" if window else "full_attention"])
    if window and not getattr(config, "use_sliding_window", True):
        kinds.discard("sliding_attention")
    if other := sorted(kinds - {"full_attention"}):
        raise ToolkitError(f"{config.model_type}: {other[0]} is not supported, full attention is", _HINT)


def require_no_dropout(config: PreTrainedConfig) -> None:
    """Raise ToolkitError where attention would drop weights in training."""
    for name in _DROPOUT:
        if share := getattr(config, name, 0):
            raise ToolkitError(
                f"{config.model_type}: dropout of attention is not supported, {name} is {share}",
                "set it to 0 in the model's config.json",
            )


def require_isolation(model: PackedModel, *, bf16: bool, device: torch.device) -> Isolation:
    """Compare packed with alone; collective. Raises ToolkitError where they differ by more than rounding."""
    sequence = _probe(model.causal_lm.config.vocab_size)
    batch = Batch.of(sequence, device)
    with without_gradients(model):
        _require_attention_of_every_layer(model, batch)
        packed, loss = model.logits(**batch.inputs)[0].float(), model(batch)
        alone = _alone(model, batch.inputs["input_ids"]).float()
    expected = F.cross_entropy(packed[batch.predictors], batch.targets, reduction="sum")
    found = Isolation(
        logits=(packed - alone).abs().max().item(),
        relative=((packed - alone).norm() / alone.norm()).item(),
        loss=((loss - expected) / expected).abs().item(),
    )
    name = model.causal_lm.config.model_type
    if not found.relative <= _LOGITS_TOLERANCE[bf16]:
        raise ToolkitError(f"{name}: packed documents see one another: logits differ by {found.relative:.2g}", _HINT)
    if not found.loss <= _LOSS_TOLERANCE[bf16]:
        raise ToolkitError(
            f"{name}: the loss is not that of the model's logits: it differs by {found.loss:.2g} "
            "(soft-capping, logit scale or bias of the head)",
            _HINT,
        )
    return found


def _require_attention_of_every_layer(model: PackedModel, batch: Batch) -> None:
    attending = set()

    def recorded(module: nn.Module, *states: Any, **features: Any) -> tuple[Tensor, None]:
        attending.add(module)
        return document_attention(module, *states, **features)

    AttentionInterface.register(ATTENTION, recorded)
    try:
        with torch.compiler.set_stance("force_eager"):
            model(batch)
    finally:
        register_attention()
    config = model.causal_lm.config
    if len(attending) < config.num_hidden_layers:
        raise ToolkitError(
            f"{config.model_type}: {config.num_hidden_layers - len(attending)} of {config.num_hidden_layers} layers do "
            "not attend through transformers' attention interface (recurrent or linear attention, or their own)",
            _HINT,
        )


def _probe(vocabulary: int) -> PackedSequence:
    """A packed batch whose tokens a hash chooses."""
    bounds = np.cumsum((0, *_LENGTHS)).astype(np.int32)
    tokens = Shuffler(0).draws(int(bounds[-1])) % np.uint64(vocabulary)
    mask = np.ones(len(tokens), np.bool_)
    mask[bounds[:-1]] = False
    return PackedSequence(tokens.astype(np.int32), mask, bounds, [])


def _alone(model: PackedModel, input_ids: Tensor) -> Tensor:
    """Logits of each document on its own, by the attention of transformers: [T, V]. input_ids: int64[1, T]."""
    model.causal_lm.set_attn_implementation("eager")
    try:
        return torch.cat([model.logits(input_ids=document)[0] for document in input_ids.split(_LENGTHS, dim=1)])
    finally:
        model.causal_lm.set_attn_implementation(ATTENTION)
