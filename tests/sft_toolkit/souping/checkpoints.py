"""Tiny checkpoints in the reference implementation of safetensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import TensorSpec, deserialize, serialize_file

LIBRARY_NAMES = {
    "BF16": "bfloat16",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "I64": "int64",
    "U8": "uint8",
    "BOOL": "bool",
    "F8_E4M3": "float8_e4m3fn",
}

Tensors = Mapping[str, tuple[str, np.ndarray]]
"""dtype and patterns (any numpy dtype of the right width) by name."""

CONFIG = {"model_type": "llama", "hidden_size": 4, "vocab_size": 8, "tie_word_embeddings": False}


def write_safetensors(path: Path, tensors: Tensors) -> None:
    entries = {
        name: TensorSpec(
            dtype=LIBRARY_NAMES[dtype], shape=values.shape, data_ptr=values.ctypes.data, data_len=values.nbytes
        )
        for name, (dtype, values) in tensors.items()
    }
    serialize_file(entries, str(path), {"format": "pt"})


def bfloat16(*values: float) -> tuple[str, np.ndarray]:
    """Values that bfloat16 holds exactly."""
    words = np.array(values, np.float32).view(np.uint32)
    assert not (words & 0xFFFF).any()
    return "BF16", (words >> 16).astype(np.uint16)


def read_patterns(path: Path) -> dict[str, np.ndarray]:
    """The patterns of a model's tensors, read by the reference implementation."""
    tensors = {}
    for file in sorted(path.glob("*.safetensors")):
        for name, entry in deserialize(file.read_bytes()):
            count = int(np.prod(entry["shape"]))
            data = bytes(entry["data"])
            width = len(data) // count if count else 1
            tensors[name] = np.frombuffer(data, f"<u{width}").reshape(entry["shape"])
    return tensors
