"""The check at the start that a packed document is trained exactly as it would be alone.

The loaded model runs on a small packed batch, and on each of its documents with the attention that transformers gives
it. Where a layer does not attend through this package (a recurrent state, an attention of its own) or documents see one
another all the same (positions that are not reset), documents go through the model one after the other instead. Where
the model makes its logits otherwise than the loss does, it makes them itself, of all tokens. Where a token's logits
depend on what follows it, the run is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedConfig

from sft_toolkit.errors import ToolkitError
from sft_toolkit.packers.shuffling import Shuffler
from sft_toolkit.training.attention import ATTENTION, document_attention, register_attention, require_supported
from sft_toolkit.training.batch import Batch, model_inputs
from sft_toolkit.training.head import head_of, learned_outside
from sft_toolkit.training.model import PackedModel, empty_model, layers_of, text_config, without_gradients
from sft_toolkit.training.sequences import PackedSequence

_LENGTHS = (70, 1, 90, 12, 30)
_KINDS = frozenset({"full_attention", "sliding_attention"})
_DROPOUT = ("attention_dropout", "attn_pdrop")
"""What configurations call it."""
_TOLERANCE, BFLOAT16_TOLERANCE = 1e-4, 5e-2
"""Greatest relative differences, of float32 and of kernels that compute in bfloat16."""
_SEEN = 70
"""Tokens of the document whose logits are compared with those of its first half."""
_MAGNITUDES = (0.0, 1.0, 100.0)
"""Of the hidden states on which heads are compared: at none a bias is all there is, at great ones a cap is."""


def require_no_dropout(config: PreTrainedConfig) -> None:
    """Raise ToolkitError where attention would drop weights in training."""
    for name in _DROPOUT:
        if share := getattr(config, name, 0):
            raise ToolkitError(
                f"{config.model_type}: dropout of attention is not supported, {name} is {share}",
                "set it to 0 in the model's config.json",
            )


def interface_fault(config: PreTrainedConfig) -> str | None:
    """Why a model takes no attention from outside, where that is so."""
    try:
        empty_model(config)
    except ToolkitError as fault:
        if isinstance(fault.__cause__, KeyError) and ATTENTION in str(fault.__cause__):
            return "its attention is its own, not that of transformers' interface"
        raise
    return None


def packing_fault(model: PackedModel, *, device: torch.device, tolerance: float = _TOLERANCE) -> str | None:
    """Why packed documents would not be trained as each alone; None where they would be. Collective.

    The model computes in float32, or `tolerance` leaves room for rounding. After a fault the model may be left in the
    middle of a pass: it is not to be used.
    """
    batch = probe_batch(model, device)
    try:
        with without_gradients(model):
            if fault := _layers_that_attend_otherwise(model, batch):
                return fault
            found = compared(model, batch)
    except ToolkitError as fault:
        return fault.message
    except Exception as fault:  # a model's own code, given boundaries that it does not know
        return f"it fails on packed documents ({type(fault).__name__})"
    if not found <= tolerance:
        return f"packed documents see one another: logits differ by {found:.2g}"
    return None


def probe_batch(model: PackedModel, device: torch.device) -> Batch:
    """A small packed batch for this model."""
    return Batch.of(_probe(text_config(model.causal_lm.config).vocab_size), device)


def compared(model: PackedModel, batch: Batch) -> float:
    """Logits of packed documents beside those of each alone: the difference relative to their norm.

    Where logits are not finite alone, a weight is broken and says nothing of packing: the first step will name it.
    """
    packed = model.logits(**batch.inputs)[0].float()
    alone = _alone(model, batch).float()
    finite = alone.isfinite().all(dim=1)
    packed, alone = packed[finite], alone[finite]
    return ((packed - alone).norm() / alone.norm().clamp(min=1e-30)).item()


def head_fault(model: PackedModel, *, device: torch.device) -> str | None:
    """Why the logits of a float32 model are not those that the loss is made of; None where they are. Collective.

    It learns no more than weight and bias of the output, and its logits are compared on hidden states of several
    magnitudes, put in the place of the last layer's.
    """
    if lacking := learned_outside(model.causal_lm):
        return f"{lacking} is part of it"
    batch = probe_batch(model, device)
    head = head_of(model.causal_lm).weight
    drawn = torch.randn((1, sum(_LENGTHS), head.size(1)), generator=torch.Generator().manual_seed(0)).to(device)
    try:
        with without_gradients(model):
            for magnitude in _MAGNITUDES:
                hidden = drawn * magnitude
                theirs = _logits_of_hidden(model, batch, hidden).float()
                ours = model.logits_of(hidden[0]).float()
                difference, norm = (theirs - ours).norm().item(), theirs.norm().item()
                if not difference <= _TOLERANCE * norm:
                    return (
                        f"at hidden states of magnitude {magnitude:g} logits differ by {difference:.2g} of {norm:.2g}"
                    )
    except (AttributeError, KeyError, RuntimeError, TypeError) as fault:  # a head of another build
        return f"comparing it fails ({type(fault).__name__})"
    return None


def choose_head(model: PackedModel, *, device: torch.device) -> str | None:
    """Let the model make its own logits where its head is more than the loss knows: why, or None. Collective."""
    fault = head_fault(model, device=device)
    model.own_head = fault is not None
    return fault


def require_causal(model: PackedModel, *, device: torch.device) -> None:
    """Raise ToolkitError where a document's logits depend on what follows them; collective."""
    config = model.causal_lm.config
    tokens = torch.from_numpy(_probe(text_config(config).vocab_size).input_ids[:_SEEN].astype(np.int64))
    with without_gradients(model):
        whole, prefix = (_document_logits(model, part, device) for part in (tokens, tokens[: _SEEN // 2]))
    whole = whole[: len(prefix)]
    difference, norm = (whole - prefix).norm().item(), prefix.norm().item()
    if difference > _TOLERANCE * norm:
        raise ToolkitError(
            f"{config.model_type}: a token's logits depend on the tokens after it (by {difference / norm:.2g})",
            "such a model would learn to copy what it is asked to predict; is `is_decoder` false in its config.json?",
        )


def _document_logits(model: PackedModel, tokens: Tensor, device: torch.device) -> Tensor:
    inputs = model_inputs(tokens, np.array([len(tokens)], np.int32), device)
    given = {"input_ids": inputs["input_ids"]} if model.apart else inputs
    return model.logits(**given)[0].float()


def _logits_of_hidden(model: PackedModel, batch: Batch, hidden: Tensor) -> Tensor:
    """What the causal LM makes of these hidden states in place of its last layer's: [T, V]."""

    def replaced(_: nn.Module, __: Any, output: Any) -> Any:
        output["last_hidden_state"] = hidden
        return output

    base = model.causal_lm.base_model
    inner = base, getattr(base, "decoder", None)  # some causal LMs call the decoder in their base model themselves
    hooks = [module.register_forward_hook(replaced) for module in inner if isinstance(module, nn.Module)]
    try:
        inputs = {"input_ids": batch.inputs["input_ids"]} if model.apart else batch.inputs
        return model.logits(**inputs)[0]
    finally:
        for hook in hooks:
            hook.remove()


def expected_fault(config: PreTrainedConfig) -> str | None:
    """What `packing_fault` will say of a model that is not loaded, as far as its shapes tell; None otherwise."""
    if reason := interface_fault(config):
        return reason
    model = PackedModel(empty_model(config).to("meta"))
    batch = probe_batch(model, torch.device("meta"))

    def of_no_value(
        module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **features: Any
    ) -> tuple[Tensor, None]:
        require_supported(module, query, mask, **features)
        return query.new_empty(1, query.size(2), query.size(1), value.size(-1)), None

    try:
        with torch.no_grad():
            return _layers_that_attend_otherwise(model, batch, of_no_value, model.hidden)
    except ToolkitError as fault:
        return fault.message
    except (NotImplementedError, RuntimeError):  # its way depends on values, such as the experts of a token
        return None
    except Exception as fault:  # a model's own code, given boundaries that it does not know
        return f"it fails on packed documents ({type(fault).__name__})"


def _layers_that_attend_otherwise(
    model: PackedModel,
    batch: Batch,
    attention: Callable[..., tuple[Tensor, None]] = document_attention,
    made: Callable[..., Tensor] | None = None,
) -> str | None:
    """Why some layer's attention is not the one of this package, with the window that its configuration says.

    made: what is run in place of the model's forward
    """
    windows: dict[nn.Module, int | None] = {}

    def recorded(module: nn.Module, *states: Any, **features: Any) -> tuple[Tensor, None]:
        windows[module] = features.get("sliding_window")
        return attention(module, *states, **features)

    AttentionInterface.register(ATTENTION, recorded)
    try:
        with torch.compiler.set_stance("force_eager"):
            _ = made(**batch.inputs) if made else model(batch)
    finally:
        register_attention()
    config = text_config(model.causal_lm.config)
    layers = layers_of(model.causal_lm)
    if lacking := sum(not any(module in windows for module in layer.modules()) for layer in layers):
        return (
            f"{lacking} of {len(layers)} layers do not attend through transformers' attention interface "
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
