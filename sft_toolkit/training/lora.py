"""Low-rank adapters by peft (LoRA, arXiv 2106.09685): matrices stay as they are, W x + (alpha / r) B A x is trained.

The model keeps its class: peft puts its layers where linear ones were. Names of weights change by `base_layer`, which
the checkpoint that was read and the model that is exported do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.training.options import Recipe

if TYPE_CHECKING:
    from peft import LoraConfig

ADAPTER = "adapter_model.safetensors"
_BASE, _A, _B = ".base_layer", ".lora_A.default.weight", ".lora_B.default.weight"


def add_adapters(causal_lm: PreTrainedModel, recipe: Recipe) -> None:
    """Put adapters, on the meta device, where the recipe says; nothing else is trained from then on.

    Raises ToolkitError without peft, UsageError where the targets name no layer.
    """
    try:
        from peft import inject_adapter_in_model
    except ImportError as fault:
        raise ToolkitError("`lora_rank`: peft is not installed", "pip install peft") from fault
    try:
        inject_adapter_in_model(_config(recipe), causal_lm, low_cpu_mem_usage=True)
    except ValueError as fault:
        raise UsageError(f"`lora_targets` {' '.join(recipe.lora_targets)}: no such layers") from fault


def with_adapters(weights: Mapping[str, Tensor], state: Mapping[str, Tensor], seed: int) -> dict[str, Tensor]:
    """Weights under the names that a model with adapters has; A is drawn, B is zero, so that training begins at W.

    state: the model's own, of which names and shapes are read
    """
    found, generator = {}, torch.Generator().manual_seed(seed)
    for name, place in state.items():
        if name.endswith(_A):
            bound = place.shape[1] ** -0.5
            found[name] = torch.empty(place.shape).uniform_(-bound, bound, generator=generator)
        elif name.endswith(_B):
            found[name] = torch.zeros(place.shape)
        else:
            found[name] = weights[name.replace(_BASE, "")]
    return found


def merged(state: Mapping[str, Tensor], recipe: Recipe) -> dict[str, Tensor]:
    """W + (alpha / r) B A under the names of the model without adapters, float32."""
    found = {}
    for name, tensor in state.items():
        if name.endswith((_A, _B)):
            continue
        place = name.removesuffix(f"{_BASE}.weight")
        if place != name:
            low, high = state[place + _A].float(), state[place + _B].float()
            tensor = tensor.float() + recipe.lora_alpha / recipe.lora_rank * (high @ low)
        found[name.replace(_BASE, "")] = tensor
    return found


def save_adapter(state: Mapping[str, Tensor], recipe: Recipe, base: Path, folder: Path) -> None:
    """Write the adapter alone, as peft writes it, with the checkpoint that it belongs to."""
    folder.mkdir(parents=True)
    own = {name: tensor for name, tensor in state.items() if name.endswith((_A, _B))}
    named = {f"base_model.model.{name.replace('.default', '')}": tensor.contiguous() for name, tensor in own.items()}
    save_file(named, folder / ADAPTER, {"format": "pt"})
    config: Any = _config(recipe)
    config.base_model_name_or_path, config.inference_mode = str(base.resolve()), True
    config.save_pretrained(folder)


def _config(recipe: Recipe) -> LoraConfig:
    from peft import LoraConfig

    targets: Any = list(recipe.lora_targets)
    return LoraConfig(
        r=recipe.lora_rank,
        lora_alpha=recipe.lora_alpha,
        target_modules="all-linear" if targets == ["all-linear"] else targets,
        lora_dropout=0.0,
        bias="none",
        task_type="CAUSAL_LM",
    )
