"""The trained model as a folder of transformers: safetensors, configuration, tokenizer and chat template."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedConfig

from sft_toolkit.errors import ToolkitError
from sft_toolkit.souping.locating import CONFIG
from sft_toolkit.souping.side_files import side_files
from sft_toolkit.training.batch import Batch
from sft_toolkit.training.carried import carry_over
from sft_toolkit.training.context import loss_of_parts
from sft_toolkit.training.export_check import require_same_loss
from sft_toolkit.training.lora import merged, save_adapter
from sft_toolkit.training.model import PackedModel, empty_model, located, without_gradients
from sft_toolkit.training.options import ModelSource, TrainOptions
from sft_toolkit.training.processes import Ranks
from sft_toolkit.training.sequences import PackedSequence

_GENERATION = "generation_config.json"


def export(
    model: PackedModel,
    config: PreTrainedConfig,
    options: TrainOptions,
    folder: Path,
    ranks: Ranks,
    checked: PackedSequence | None = None,
) -> None:
    """Write the model in the types that its checkpoint had, and read it back; collective.

    The folder appears when it is whole, every tensor was found to be equal, bit for bit, and plain transformers has the
    trained model's loss on `checked`. Of a model with adapters the merged weights are written, or the adapter alone.
    Raises ToolkitError.
    """
    batch = Batch.of(checked, ranks.device) if checked is not None else None
    loss = _mean_loss(model, batch, ranks) if batch else 0.0
    gathered = get_model_state_dict(model.causal_lm, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if not ranks.leads:
        return
    dtype = (config.dtype if options.source.checkpoint else None) or torch.float32
    partial = folder.with_name(f"{folder.name}.partial")
    for leftover in (partial, folder):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        if options.adapter_only:
            save_adapter(gathered, options.recipe, options.source.path, partial)
            _save_side_files(options.source, partial, of_model=False)
        else:
            _save_model(model, gathered, config, options, partial, dtype)
        if batch:
            require_same_loss(partial, batch, loss, dtype, bf16=options.recipe.bf16)
        partial.rename(folder)
    except (OSError, SafetensorError) as fault:
        shutil.rmtree(partial, ignore_errors=True)
        raise ToolkitError(f"{folder}: cannot be written: {fault}", "make room, then use `resume=True`") from fault
    except ToolkitError:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _save_model(
    model: PackedModel,
    gathered: dict[str, Tensor],
    config: PreTrainedConfig,
    options: TrainOptions,
    folder: Path,
    dtype: torch.dtype,
) -> None:
    if options.recipe.lora_rank:
        gathered = merged(gathered, options.recipe)
    # some tensors of some models are float32 in a bfloat16 checkpoint
    blank = empty_model(config, dtype, attention=None)
    weights = {name: gathered[name].to(tensor.dtype) for name, tensor in blank.state_dict().items()}
    blank.save_pretrained(folder, state_dict=weights)
    if model.unread:
        carry_over(options.source.path, folder, model.unread)
    _save_side_files(options.source, folder)
    _require_equal(folder, weights, dtype)


def _mean_loss(model: PackedModel, batch: Batch, ranks: Ranks) -> float:
    with without_gradients(model):
        return loss_of_parts(model, batch, ranks.sharing).item() / len(batch.targets)


def _save_side_files(source: ModelSource, folder: Path, *, of_model: bool = True) -> None:
    """Tokenizer and chat template, and the checkpoint's own words about its configuration, which did not change."""
    origin = source.tokenizer or source.path
    if origin.suffix == ".gguf":
        AutoTokenizer.from_pretrained(**located(origin), trust_remote_code=False).save_pretrained(folder)
    elif origin.is_dir():
        for name in set(side_files(origin)) - {CONFIG}:
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(origin / name, folder / name)
    for name in (CONFIG, _GENERATION) if of_model else ():  # the checkpoint's, whosever tokenizer it is
        if source.checkpoint is not None and (own := source.checkpoint / name).is_file():
            shutil.copyfile(own, folder / name)


def _require_equal(folder: Path, weights: dict[str, Tensor], dtype: torch.dtype) -> None:
    model, found = AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, local_files_only=True, trust_remote_code=False, output_loading_info=True
    )
    reloaded = model.state_dict()
    differing = [name for name, tensor in weights.items() if not torch.equal(reloaded[name], tensor)]
    if faults := sorted(found["missing_keys"]) + differing:
        raise ToolkitError(f"{folder}: reloaded, {faults[0]} is not what was saved")
