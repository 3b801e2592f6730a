"""Tensors of a checkpoint that transformers does not read, such as layers that predict several tokens.

Its configuration speaks of them and servers use them, so they lie in the trained model's folder as they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from sft_toolkit.json_text import decode, encode_text
from sft_toolkit.shards.atomic import write_text

CARRIED, _TRAINED = "model-carried.safetensors", "model-trained.safetensors"
_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_COMPUTED = re.compile(r"rotary_emb\.inv_freq$|\.masked_bias$|\.attn(?:ention)?\.bias$")
"""Buffers that old checkpoints hold and the configuration determines."""


def unread_tensors(folder: Path, model: Any, unexpected: Iterable[str]) -> list[str]:
    """Names in the safetensors files of `folder` that `model` has no place for.

    unexpected: those that transformers reported; others the model's class has it pass over in silence
    """
    passed_over = [re.compile(pattern) for pattern in model._keys_to_ignore_on_load_unexpected or ()]
    own, reported = set(model.state_dict()), set(unexpected)
    return sorted(
        name
        for name in _places(folder)
        if name not in own
        and not _COMPUTED.search(name)
        and (name in reported or any(pattern.search(name) for pattern in passed_over))
    )


def carry_over(source: Path, folder: Path, names: list[str]) -> None:
    """Write these tensors of `source` into `folder` too, in a file of their own that its index names."""
    save_file(_read(source, names), folder / CARRIED, {"format": "pt"})
    if (folder / _SINGLE).exists():  # beside an index it would pass for the whole model
        (folder / _SINGLE).rename(folder / _TRAINED)
    index = folder / _INDEX
    places = {name: path.name for name, path in _places(folder).items()}
    found = decode(index.read_bytes()) if index.exists() else {"metadata": {}}
    found["metadata"]["total_size"] = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    write_text(index, encode_text({**found, "weight_map": dict(sorted(places.items()))}) + "\n")


def _places(folder: Path) -> dict[str, Path]:
    found = {}
    for path in sorted(folder.glob("*.safetensors")) if folder.is_dir() else ():
        with safe_open(path, "pt") as file:
            found.update(dict.fromkeys(file.keys(), path))
    return found


def _read(folder: Path, names: Iterable[str]) -> dict[str, Tensor]:
    places, tensors = _places(folder), {}
    for name in names:
        with safe_open(places[name], "pt") as file:
            tensors[name] = file.get_tensor(name)
    return tensors
