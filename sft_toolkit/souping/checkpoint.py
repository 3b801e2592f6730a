"""A checkpoint on disk: a safetensors file, or a Hugging Face folder of one or several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sft_toolkit import json_text
from sft_toolkit.errors import ToolkitError
from sft_toolkit.souping.safetensors_file import Tensor, read_tensors

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`tensors` by name; `folder` holds config and tokenizer, None for a bare safetensors file."""

    path: Path
    folder: Path | None
    tensors: dict[str, Tensor]

    @property
    def name(self) -> str:
        return self.path.name


def open_checkpoint(path: Path) -> Checkpoint:
    """Read the headers. Raises ToolkitError where files are missing, broken, or contradict their index."""
    if path.is_file():
        return Checkpoint(path, None, _gather([path]))
    if not path.is_dir():
        raise ToolkitError(f"{path}: no such checkpoint", "name a folder with safetensors or one safetensors file")
    index, single = path / INDEX, path / SINGLE
    if index.exists() and single.exists():
        raise ToolkitError(f"{path}: both {SINGLE} and {INDEX}: one of them is stale", "remove the stale one")
    if index.exists():
        return Checkpoint(path, path, _gather_indexed(index))
    if single.exists():
        return Checkpoint(path, path, _gather([single]))
    raise ToolkitError(f"{path}: neither {SINGLE} nor {INDEX}", _missing_hint(path))


def in_order(paths: Iterable[Path]) -> list[Path]:
    """The order in which checkpoints are added up, whatever order they came in: by name, then by full path."""
    return sorted(paths, key=lambda path: (path.resolve().name, str(path.resolve())))


def _gather(paths: Iterable[Path]) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for path in paths:
        for tensor in read_tensors(path):
            if tensor.name in tensors:
                raise ToolkitError(f"tensor {tensor.name} is in {tensors[tensor.name].path} and in {path}")
            tensors[tensor.name] = tensor
    return tensors


def _gather_indexed(index: Path) -> dict[str, Tensor]:
    """Tensors of a sharded checkpoint. What the index says and what the files hold must be the same."""
    shard_of = _weight_map(index)
    folder = index.parent
    shards = sorted(set(shard_of.values()))
    for shard in shards:
        if not (folder / shard).is_file():
            raise _stale(index, f"names {shard}, which is missing, for tensor {_tensor_in(shard, shard_of)}")
    unnamed = sorted({path.name for path in folder.glob("model*.safetensors")} - set(shards))
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


def _missing_hint(path: Path) -> str:
    if (path / "adapter_model.safetensors").exists():
        return "this is an adapter: the mean of factors is not the mean of models, so merge it into its base first"
    if any(path.glob("*.bin")) or any(path.glob("*.pt")) or any(path.glob("*.pth")):
        return "pickles are not read: save it again with safe_serialization=True"
    return "name a folder that transformers can load"
