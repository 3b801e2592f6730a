"""A model loaded as it trains documents exactly, or refused in one line that says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from transformers import PreTrainedConfig

from sft_toolkit.errors import ToolkitError
from sft_toolkit.training.context import require_same_when_shared, share_sequences
from sft_toolkit.training.isolation import (
    BFLOAT16_TOLERANCE,
    choose_head,
    interface_fault,
    packing_fault,
    probe_batch,
    require_causal,
    require_no_dropout,
)
from sft_toolkit.training.model import PackedModel, load_sharded, moved
from sft_toolkit.training.options import TrainOptions
from sft_toolkit.training.processes import Ranks

_HINT = "this model cannot be trained here; use a trainer that was made for it"


def load_checked(
    options: TrainOptions, config: PreTrainedConfig, ranks: Ranks, warn: Callable[[str], None]
) -> PackedModel:
    """Load packed where that changes nothing, else one document after the other, and `warn` of that; collective.

    Checks compute in float32, whatever training computes in: in bfloat16 rounding hides what a small bias adds.
    Raises ToolkitError for a model that would be trained to something else than the loss of its documents.
    """
    require_no_dropout(config)
    plain = replace(options, compile=False, recipe=replace(options.recipe, bf16=False))
    with refused_in_one_line(config):
        fault = interface_fault(config)
        if fault is None:
            model = load_sharded(plain, config, ranks.mesh)
            fault = packing_fault(model, device=ranks.device)
        if fault is not None:
            slower = "documents go through the model one after the other, which is exact and slower"
            warn(f"{config.model_type}: {fault}: {slower}")
            model = load_sharded(plain, config, ranks.mesh, apart=True)
        require_causal(model, device=ranks.device)
        if fault := choose_head(model, device=ranks.device):
            costly = "logits of all tokens are made, which is exact and takes more memory"
            warn(f"{config.model_type}: its head is of its own kind, {fault}: {costly}")
        if ranks.sharing:
            require_same_when_shared(model, probe_batch(model, ranks.device), ranks.sharing)
        if plain != options:
            model = moved(model, options, config, ranks.mesh)
            if ranks.sharing:
                share_sequences(model, ranks.sharing)
        if ranks.device.type == "cuda" and options.recipe.bf16 and not model.apart and not ranks.sharing:
            fault = packing_fault(model, device=ranks.device, tolerance=BFLOAT16_TOLERANCE)
            if fault is not None:
                raise ToolkitError(f"{config.model_type}: in bfloat16, {fault}", "use `bf16=False`, which is slower")
    return model


@contextmanager
def refused_in_one_line(config: PreTrainedConfig) -> Iterator[None]:
    """Turn what a model's own code raises on plain documents into one line that names the model."""
    try:
        yield
    except (ToolkitError, MemoryError):
        raise
    except Exception as fault:  # code of transformers, for a type that is not a plain causal LM
        reason = next(iter(str(fault).splitlines()), "")
        raise ToolkitError(
            f"{config.model_type}: fails on a document alone: {type(fault).__name__}: {reason}", _HINT
        ) from fault
