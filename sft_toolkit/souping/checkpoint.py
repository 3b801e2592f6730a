"""A checkpoint on disk: a file of weights, or a Hugging Face folder of one or several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sft_toolkit import json_text
from sft_toolkit.errors import ToolkitError
from sft_toolkit.souping.locating import CONFIG, INDEX, SINGLE, TORCH_INDEX, TORCH_SINGLE, locate, not_a_checkpoint
from sft_toolkit.souping.safetensors_file import Tensor, read_tensors
from sft_toolkit.souping.torch_file import SUFFIXES, read_torch_tensors

_FACTORS = (".lora_A.", ".lora_B.", ".lora_embedding_", ".lora_magnitude_vector")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`tensors` by name; `folder` holds config and tokenizer, None for a bare file of weights.

    `left_out`: why tensors of its files are no part of the model, by name.
    """

    path: Path
    folder: Path | None
    tensors: dict[str, Tensor]
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def config(self) -> Path | None:
        """Its config.json, where it has one."""
        return None if self.folder is None or not (self.folder / CONFIG).is_file() else self.folder / CONFIG


def open_checkpoint(path: Path) -> Checkpoint:
    """Read the headers. Raises ToolkitError where files are missing, broken, or contradict their index."""
    found = locate(path)
    if found.is_file():
        return Checkpoint(path, None, _gather([found]))
    for index, single in ((INDEX, SINGLE), (TORCH_INDEX, TORCH_SINGLE)):
        if (found / index).exists() and (found / single).exists():
            raise ToolkitError(f"{found}: both {single} and {index}: one of them is stale", "remove the stale one")
        if (found / index).exists():
            return Checkpoint(path, found, _gather_indexed(found / index))
        if (found / single).exists():
            return Checkpoint(path, found, _gather([found / single]))
    raise not_a_checkpoint(found)


def in_order(paths: Iterable[Path]) -> list[Path]:
    """The order in which checkpoints are added up, whatever order they came in: by name, then by full path."""
    return sorted(paths, key=lambda path: (path.resolve().name, str(path.resolve())))


def _gather(paths: Iterable[Path]) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    path = None
    for path in paths:
        for tensor in read_torch_tensors(path) if path.suffix in SUFFIXES else read_tensors(path):
            if tensor.name in tensors:
                raise ToolkitError(f"tensor {tensor.name} is in {tensors[tensor.name].path} and in {path}")
            if any(part in tensor.name for part in _FACTORS):
                fault = f"tensor {tensor.name} in {path} is a factor of an adapter, not a weight"
                raise ToolkitError(fault, "merge the adapter into its base first: `merge_and_unload` of peft")
            tensors[tensor.name] = tensor
    if not tensors:
        raise ToolkitError(f"{path}: holds no tensors", "there is nothing to average: write or download it again")
    return tensors


def _gather_indexed(index: Path) -> dict[str, Tensor]:
    """Tensors of a sharded checkpoint. What the index says and what the files hold must be the same."""
    shard_of = _weight_map(index)
    folder = index.parent
    shards = sorted(set(shard_of.values()))
    for shard in shards:
        if not _is_file(folder / shard):
            raise _stale(index, f"names {shard}, which is missing, for tensor {_tensor_in(shard, shard_of)}")
    weights = index.name.replace(".", "*.", 1).removesuffix(".index.json")
    unnamed = sorted({path.name for path in folder.glob(weights)} - set(shards))
    if unnamed:
        raise _stale(index, f"does not name {unnamed[0]}")
    tensors = _gather(folder / shard for shard in shards)
    for name, tensor in tensors.items():
        if shard_of.get(name) != tensor.path.name:
            raise _stale(index, f"does not place tensor {name} in {tensor.path.name}, where it is")
    absent = sorted(shard_of.keys() - tensors.keys())
    if absent:
        raise _stale(index, f"places tensor {absent[0]} in {shard_of[absent[0]]}, where it is not")
    return tensors


def _weight_map(index: Path) -> dict[str, str]:
    try:
        content: Any = json_text.decode_strictly(index.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ToolkitError(f"{index}: not JSON: {str(error).splitlines()[0]}") from error
    shard_of = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(shard_of, dict) or not shard_of:
        raise ToolkitError(f"{index}: no weight_map")
    for name, shard in shard_of.items():
        if not isinstance(shard, str) or Path(shard).name != shard:
            raise ToolkitError(f"{index}: tensor {name} is said to be in {shard}, which is no file of this folder")
    return shard_of


def _tensor_in(shard: str, shard_of: dict[str, str]) -> str:
    return min(name for name, place in shard_of.items() if place == shard)


def _stale(index: Path, fault: str) -> ToolkitError:
    return ToolkitError(f"{index}: stale: it {fault}", "save or download the checkpoint again")


def _is_file(path: Path) -> bool:
    """False also for what can be no file's name."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
