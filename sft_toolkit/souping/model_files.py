"""The safetensors files of a model that is being written: where each tensor goes, and the index of several files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sft_toolkit.shards.atomic import sync
from sft_toolkit.souping.agreed_tensors import Parameter
from sft_toolkit.souping.locating import INDEX, SINGLE
from sft_toolkit.souping.safetensors_file import encode_header


@dataclass(frozen=True, slots=True)
class Place:
    """The first byte of a tensor in the output."""

    path: Path
    offset: int


@dataclass(frozen=True)
class ModelFiles:
    """A model's files in `folder`: created in full size with their headers, tensors yet to be written."""

    folder: Path
    places: dict[str, Place]

    def finish(self) -> None:
        """Force the files to the disk. Call when every tensor is written."""
        for path in {place.path for place in self.places.values()}:
            sync(path)


def create_model_files(folder: Path, parameters: Sequence[Parameter], max_shard_size: int) -> ModelFiles:
    """Lay the tensors out in order, a new file where one would pass `max_shard_size` bytes of tensors."""
    shards = _split(parameters, max_shard_size)
    places: dict[str, Place] = {}
    for number, shard in enumerate(shards, start=1):
        path = folder / (SINGLE if len(shards) == 1 else f"model-{number:05}-of-{len(shards):05}.safetensors")
        header = encode_header((parameter.name, parameter.dtype, parameter.shape) for parameter in shard)
        offset = len(header)
        for parameter in shard:
            places[parameter.name] = Place(path, offset)
            offset += parameter.size
        with path.open("wb") as file:
            file.write(header)
            file.truncate(offset)
    if len(shards) > 1:
        _write_index(folder / INDEX, parameters, places)
    return ModelFiles(folder, places)


def _split(parameters: Iterable[Parameter], max_shard_size: int) -> list[list[Parameter]]:
    shards: list[list[Parameter]] = [[]]
    filled = 0
    for parameter in parameters:
        if shards[-1] and filled + parameter.size > max_shard_size:
            shards.append([])
            filled = 0
        shards[-1].append(parameter)
        filled += parameter.size
    return shards


def _write_index(path: Path, parameters: Sequence[Parameter], places: dict[str, Place]) -> None:
    total = sum(parameter.size for parameter in parameters)
    weight_map = {name: places[name].path.name for name in sorted(places)}
    path.write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}, indent=2) + "\n")
    sync(path)
