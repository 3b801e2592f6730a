"""The check at the start that a packed document is trained exactly as it would be alone.

The loaded model runs on a small packed batch, and on each of its documents with the attention that transformers gives
it. Where a layer does not attend through this package (a recurrent state, an attention of its own) or documents see one
another all the same (positions that are not reset), documents go through the model one after the other instead. Where
the model makes its logits otherwise than the loss does, the run is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedConfig

from sft_toolkit.errors import ToolkitError
from sft_toolkit.packers.shuffling import Shuffler
from sft_toolkit.training.attention import ATTENTION, document_attention, register_attention
from sft_toolkit.training.batch import Batch
from sft_toolkit.training.model import PackedModel, without_gradients
from sft_toolkit.training.sequences import PackedSequence

_LENGTHS = (70, 1, 90, 12, 30)
_LOGITS_TOLERANCE = {False: 1e-4, True: 5e-2}
_KINDS = frozenset({"full_attention", "sliding_attention"})
_DROPOUT = ("attention_dropout", "attn_pdrop")
"""What configurations call it."""
_HEAD_TOLERANCE = {False: 1e-4, True: 1e-2}
"""Greatest relative differences, without and with bfloat16."""
_MAGNITUDES = (0.0, 1.0, 100.0)
"""Of the hidden states on which heads are compared: at none a bias is all there is, at great ones a cap is."""
_HEAD_HINT = "this model's head cannot be trained here; use a trainer that runs the whole model"


def require_no_dropout(config: PreTrainedConfig) -> None:
    """Raise ToolkitError where attention would drop weights in training."""
    for name in _DROPOUT:
        if share := getattr(config, name, 0):
            raise ToolkitError(
                f"{config.model_type}: dropout of attention is not supported, {name} is {share}",
                "set it to 0 in the model's config.json",
            )


def packing_fault(model: PackedModel, *, bf16: bool, device: torch.device) -> str | None:
    """Why packed documents would not be trained as each alone; None where they would be. Collective.

    After a fault the model may be left in the middle of a pass: it is not to be used.
    """
    batch = Batch.of(_probe(model.causal_lm.config.vocab_size), device)
    try:
        with without_gradients(model):
            if fault := _layers_that_attend_otherwise(model, batch):
                return fault
            found = compared(model, batch)
    except ToolkitError as fault:
        return fault.message
    except Exception as fault:  # a model's own code, given boundaries that it does not know
        return f"it fails on packed documents ({type(fault).__name__})"
    if not found <= _LOGITS_TOLERANCE[bf16]:
        return f"packed documents see one another: logits differ by {found:.2g}"
    return None


def compared(model: PackedModel, batch: Batch) -> float:
    """Logits of packed documents beside those of each alone: the difference relative to their norm.

    Where logits are not finite alone, a weight is broken and says nothing of packing: the first step will name it.
    """
    packed = model.logits(**batch.inputs)[0].float()
    alone = _alone(model, batch).float()
    finite = alone.isfinite().all(dim=1)
    packed, alone = packed[finite], alone[finite]
    return ((packed - alone).norm() / alone.norm().clamp(min=1e-30)).item()


def require_known_head(model: PackedModel, *, bf16: bool, device: torch.device) -> None:
    """Raise ToolkitError where the model's logits are not those that the loss is made of; collective.

    Compared on hidden states of several magnitudes, put in the place of the last layer's.
    """
    config = model.causal_lm.config
    batch = Batch.of(_probe(config.vocab_size), device)
    with without_gradients(model):
        shape = 1, sum(_LENGTHS), model.causal_lm.get_output_embeddings().weight.size(1)
        drawn = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        drawn = drawn.to(device, torch.bfloat16 if bf16 else torch.float32)
        for magnitude in _MAGNITUDES:
            hidden = drawn * magnitude
            theirs = _logits_of_hidden(model, batch, hidden).float()
            ours = model.logits_of(hidden[0]).float()
            difference, norm = (theirs - ours).norm().item(), theirs.norm().item()
            if not difference <= _HEAD_TOLERANCE[bf16] * norm:
                raise ToolkitError(
                    f"{config.model_type}: its head makes other logits than the loss is made of: at hidden states of "
                    f"magnitude {magnitude:g} they differ by {difference:.2g} of {norm:.2g}",
                    _HEAD_HINT,
                )


def _logits_of_hidden(model: PackedModel, batch: Batch, hidden: Tensor) -> Tensor:
    """What the causal LM makes of these hidden states in place of its last layer's: [T, V]."""

    def replaced(_: nn.Module, __: Any, output: Any) -> Any:
        output["last_hidden_state"] = hidden
        return output

    hook = model.causal_lm.base_model.register_forward_hook(replaced)
    try:
        inputs = {"input_ids": batch.inputs["input_ids"]} if model.apart else batch.inputs
        return model.logits(**inputs)[0]
    finally:
        hook.remove()


def _layers_that_attend_otherwise(model: PackedModel, batch: Batch) -> str | None:
    """Why some layer's attention is not the one of this package, with the window that its configuration says."""
    windows: dict[nn.Module, int | None] = {}

    def recorded(module: nn.Module, *states: Any, **features: Any) -> tuple[Tensor, None]:
        windows[module] = features.get("sliding_window")
        return document_attention(module, *states, **features)

    AttentionInterface.register(ATTENTION, recorded)
    try:
        with torch.compiler.set_stance("force_eager"):
            model(batch)
    finally:
        register_attention()
    config = model.causal_lm.config
    if (lacking := config.num_hidden_layers - len(windows)) > 0:
        return (
            f"{lacking} of {config.num_hidden_layers} layers do not attend through transformers' attention interface "
            "(recurrent or linear attention, or their own)"
        )
    kinds = getattr(config, "layer_types", None) or []
    if other := sorted(set(kinds) - _KINDS):
        return f"{other[0]} within packed documents is not supported"
    sliding, windowed = kinds.count("sliding_attention"), sum(one is not None for one in windows.values())
    if kinds and getattr(config, "sliding_window", None) and windowed != sliding:
        return f"{sliding} layers have a sliding window, {windowed} pass it on to their attention"
    if not kinds and _window_of_all(config) and not windowed:
        return "layers have a sliding window and do not pass it on to their attention"
    return None


def _window_of_all(config: PreTrainedConfig) -> int | None:
    """The window of a configuration without kinds of layers, unless it is switched off."""
    return getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None


def _probe(vocabulary: int) -> PackedSequence:
    """A packed batch whose tokens a hash chooses."""
    bounds = np.cumsum((0, *_LENGTHS)).astype(np.int32)
    tokens = Shuffler(0).draws(int(bounds[-1])) % np.uint64(vocabulary)
    mask = np.ones(len(tokens), np.bool_)
    mask[bounds[:-1]] = False
    return PackedSequence(tokens.astype(np.int32), mask, bounds, [])


def _alone(model: PackedModel, batch: Batch) -> Tensor:
    """Logits of each document on its own, by the attention of transformers: [T, V]."""
    model.causal_lm.set_attn_implementation("eager")
    try:
        documents = batch.inputs["input_ids"].split(_LENGTHS, dim=1)
        return torch.cat([model.logits(input_ids=document)[0] for document in documents])
    finally:
        model.causal_lm.set_attn_implementation(ATTENTION)
