"""A causal LM of transformers, sharded with FSDP2, that takes packed batches and gives summed losses.

The first rank reads the weights and sends each rank its shards, so that a node holds one copy in memory, not one a
rank. Weights are kept in float32. Gradients are reduced as a sum after every microbatch and stay sharded; keeping them
whole until the step's end would save communication and cost 4 bytes a parameter on every rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from accelerate import init_empty_weights
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from torch.nn.functional import cross_entropy
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig

from sft_toolkit.errors import ToolkitError
from sft_toolkit.training.attention import ATTENTION, register_attention
from sft_toolkit.training.batch import Batch
from sft_toolkit.training.carried import unread_tensors
from sft_toolkit.training.head import head_of
from sft_toolkit.training.lora import add_adapters, with_adapters
from sft_toolkit.training.loss import summed_cross_entropy
from sft_toolkit.training.options import ModelSource, TrainOptions

_NO_CODE = {"trust_remote_code": False}
"""A folder's own Python files are never run, nor is anyone asked whether they may be."""


class PackedModel(nn.Module):
    """A causal LM whose forward takes a packed batch and returns the sum of its losses, without making logits.

    apart: documents go through the model one after the other, by the attention of transformers: for models that
    would let packed documents see one another
    own_head: the model makes its logits itself, of all tokens: for heads that are more than `head_of` knows
    unread: on the first rank, tensors of the checkpoint that transformers does not read
    """

    def __init__(self, causal_lm: Any, *, apart: bool = False) -> None:
        super().__init__()
        self.causal_lm = causal_lm
        self.apart = apart
        self.own_head = False
        self.unread: list[str] = []

    def forward(self, batch: Batch) -> Tensor:
        """Sum of the trained tokens' cross entropy, in nats: float64 scalar."""
        made = self._made_of_all if self.own_head else self.hidden
        states = self._made_apart(batch, made) if self.apart else made(**batch.inputs)
        if self.own_head:
            logits = states[batch.predictors].float()
            return cross_entropy(logits, batch.targets, reduction="sum").double()
        head = head_of(self.causal_lm)
        return summed_cross_entropy(states.to(head.weight.dtype), head, batch.predictors, batch.targets)

    def logits(self, **inputs: Any) -> Tensor:
        """What the causal LM itself makes of these inputs: [1, T, V]."""
        return self.causal_lm(**inputs, use_cache=False).logits

    def logits_of(self, hidden: Tensor) -> Tensor:
        """What the loss is made of, for hidden states [n, H] of the last layer: [n, V]."""
        head = head_of(self.causal_lm)
        return head.logits(hidden.to(head.weight.dtype))

    def hidden(self, **inputs: Any) -> Tensor:
        """States of the last layer: [T, H]."""
        return self.causal_lm.base_model(**inputs, use_cache=False).last_hidden_state[0]

    def _made_of_all(self, **inputs: Any) -> Tensor:
        return self.logits(**inputs)[0]

    def _made_apart(self, batch: Batch, made: Callable[..., Tensor]) -> Tensor:
        """Every rank makes as many passes as the one with the most documents: layers are gathered in each."""
        input_ids, bounds = batch.inputs["input_ids"], batch.inputs["cu_seq_lens_q"]
        passes = torch.tensor(len(bounds) - 1, device=input_ids.device)
        if dist.is_initialized():
            dist.all_reduce(passes, dist.ReduceOp.MAX)
        documents = [*input_ids.split(bounds.diff().tolist(), dim=1)]
        documents += [input_ids[:, :1]] * (int(passes) - len(documents))
        return torch.cat([made(input_ids=document) for document in documents])


@contextmanager
def without_gradients(model: PackedModel) -> Iterator[None]:
    """Within, `model` is in evaluation mode. FSDP leaves it gathered until a backward pass, so it is sharded after."""
    model.eval()
    with torch.no_grad():
        yield
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()
    model.train()


def read_config(source: ModelSource) -> PreTrainedConfig:
    """Raises ToolkitError where transformers cannot read it."""
    with _explained(source.path):
        return AutoConfig.from_pretrained(**located(source.path), **_NO_CODE)


def text_config(config: PreTrainedConfig) -> Any:
    """What a configuration says of the model that reads and writes text: its own, or a part of it."""
    return config.get_text_config(decoder=True)


def empty_model(config: PreTrainedConfig, dtype: torch.dtype = torch.float32, attention: str | None = ATTENTION) -> Any:
    """The model on the meta device, but for buffers, which its configuration determines.

    attention: None for the one that transformers chooses
    """
    register_attention()
    own = deepcopy(config)  # transformers writes dtype and attention into what it is given
    with _explained(config.name_or_path), init_empty_weights(include_buffers=False):
        return AutoModelForCausalLM.from_config(own, dtype=dtype, attn_implementation=attention, **_NO_CODE)


def load_sharded(
    options: TrainOptions, config: PreTrainedConfig, mesh: DeviceMesh, *, apart: bool = False
) -> PackedModel:
    """Build the model sharded over `mesh` and fill it; collective. apart: see PackedModel."""
    weights, unread = _read_weights(options, config) if mesh.get_rank() == 0 else ({}, [])
    model = _allocated(options, config, mesh, apart=apart)
    model.unread = unread
    if weights and options.recipe.lora_rank:
        weights = with_adapters(weights, model.causal_lm.state_dict(), options.recipe.seed)
    complete = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(model.causal_lm, weights, options=complete)
    return model


def moved(model: PackedModel, options: TrainOptions, config: PreTrainedConfig, mesh: DeviceMesh) -> PackedModel:
    """The same weights in a model that computes as these options say; each rank copies its own shards."""
    found = _allocated(options, config, mesh, apart=model.apart)
    found.own_head, found.unread = model.own_head, model.unread
    before = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    with torch.no_grad():
        for name, tensor in (*found.named_parameters(), *found.named_buffers()):
            tensor.copy_(before[name])
    return found


def load_whole(path: Path, config: PreTrainedConfig, device: torch.device, *, apart: bool = False) -> PackedModel:
    """A checkpoint on one device, in float32, to be evaluated. apart: see PackedModel"""
    register_attention()
    attention = None if apart else ATTENTION
    causal_lm, _ = _from_checkpoint(path, deepcopy(config), dtype=torch.float32, attn_implementation=attention)
    return PackedModel(causal_lm.to(device), apart=apart)


def layers_of(causal_lm: Any) -> nn.ModuleList:
    """The stack of decoder layers: of the lists of modules that are part of no other, the one with most parameters."""
    stacks: dict[str, nn.ModuleList] = {}
    for name, module in causal_lm.named_modules():
        if isinstance(module, nn.ModuleList) and not any(name.startswith(f"{outer}.") for outer in stacks):
            stacks[name] = module
    if not stacks:
        raise ToolkitError(f"{type(causal_lm).__name__}: no stack of layers was found", "it is not supported")
    return max(stacks.values(), key=lambda stack: sum(one.numel() for one in stack.parameters()))


def located(path: Path) -> dict[str, Any]:
    """Arguments of `from_pretrained` for a folder, a config file or a GGUF file."""
    if path.suffix == ".gguf":
        return {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name, "local_files_only": True}
    return {"pretrained_model_name_or_path": path, "local_files_only": True}


def _read_weights(options: TrainOptions, config: PreTrainedConfig) -> tuple[dict[str, Tensor], list[str]]:
    """All tensors of the model, and the names of those in the checkpoint that are none of its."""
    source, config = options.source, deepcopy(config)
    if source.init is None:
        model, unexpected = _from_checkpoint(source.path, config, dtype="auto")
        return model.state_dict(), unread_tensors(source.path, model, unexpected)
    with _explained(source.path):
        torch.manual_seed(options.recipe.seed)
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32, **_NO_CODE).state_dict(), []


def _from_checkpoint(path: Path, config: PreTrainedConfig, **wishes: Any) -> tuple[Any, list[str]]:
    """The model, and the names of tensors that it has no place for."""
    with _explained(path):
        model, found = AutoModelForCausalLM.from_pretrained(
            **located(path), config=config, output_loading_info=True, **_NO_CODE, **wishes
        )
    if missing := sorted(found["missing_keys"]):
        raise ToolkitError(f"{path}: has no weights for {missing[0]}", "is the checkpoint complete?")
    return model, list(found["unexpected_keys"])


def _allocated(options: TrainOptions, config: PreTrainedConfig, mesh: DeviceMesh, *, apart: bool) -> PackedModel:
    """The model sharded over `mesh`, its parameters without values yet."""
    model = PackedModel(empty_model(config, attention=None if apart else ATTENTION), apart=apart)
    model.causal_lm.tie_weights()
    if options.recipe.lora_rank:
        add_adapters(model.causal_lm, options.recipe)
    _shard(model, options, mesh)
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    model.to_empty(device=mesh.device_type)
    for name, buffer in model.named_buffers():
        buffer.copy_(buffers[name])
    return model


def _shard(model: PackedModel, options: TrainOptions, mesh: DeviceMesh) -> None:
    policy = MixedPrecisionPolicy(
        param_dtype=torch.bfloat16 if options.recipe.bf16 else None, reduce_dtype=torch.float32
    )
    causal_lm = model.causal_lm
    if options.activation_checkpointing:
        causal_lm.activation_checkpointing_enable()
    for layer in layers_of(causal_lm):
        if options.compile:
            layer.compile(dynamic=True)
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    if causal_lm.get_input_embeddings().weight is not causal_lm.get_output_embeddings().weight:
        fully_shard(causal_lm.get_input_embeddings(), mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    for method in ("logits", "logits_of"):
        register_fsdp_forward_method(model, method)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)


@contextmanager
def _explained(place: Path | str) -> Iterator[None]:
    """Turn what transformers says about an unfit model into one line."""
    try:
        yield
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as fault:
        if "trust_remote_code" in str(fault):
            message = f"{place}: its model is defined by Python files of its own, which are never run"
            raise ToolkitError(message, "use a model type that transformers itself holds") from fault
        reason = next(iter(str(fault).splitlines()), type(fault).__name__)
        raise ToolkitError(f"{place}: transformers cannot load it: {reason}") from fault
