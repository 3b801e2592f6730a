"""The safetensors file format: a strict reader of headers and a writer of them.

A file is 8 bytes of header length n (little endian), n bytes of JSON that name each tensor's dtype, shape and byte
range, then the bytes. A header that a reader could understand in two ways is refused, as is a file that is not whole.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from sft_toolkit import json_text
from sft_toolkit.errors import ToolkitError

LARGEST_HEADER = 100_000_000
"""Bytes; the limit of the reference implementation."""

BITS = {
    **dict.fromkeys(("F4",), 4),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}
"""Bits of one element, by dtype."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where one tensor lies: `size` bytes from byte `offset` of `path`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    path: Path
    offset: int
    size: int


class BadFile(ToolkitError):
    """A file that is not whole, well-formed safetensors."""

    def __init__(self, path: Path, fault: str, hint: str = "write or download the file again") -> None:
        super().__init__(f"{path}: {fault}", hint)

    def __reduce__(self) -> tuple[Any, ...]:
        return ToolkitError, (self.message, self.hint)


def read_tensors(path: Path) -> list[Tensor]:
    """The tensors of a file in the order of their bytes. Raises BadFile, naming the tensor where one is at fault."""
    try:
        with path.open("rb") as file:
            file_size = os.fstat(file.fileno()).st_size
            header_size = _header_size(path, file.read(8), file_size)
            entries = _decode_header(path, file.read(header_size))
    except OSError as error:
        raise ToolkitError(f"{path}: cannot be read: {error.strerror}") from error
    start = 8 + header_size
    tensors = [_tensor(path, name, entry, start) for name, entry in entries.items() if name != "__metadata__"]
    tensors.sort(key=lambda tensor: (tensor.offset, tensor.size))
    _require_gapless(path, tensors, start, file_size)
    return tensors


def encode_header(tensors: Iterable[tuple[str, str, tuple[int, ...]]]) -> bytes:
    """The length and header of a file that holds (name, dtype, shape) in that order without gaps, padded to 8 bytes."""
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, dtype, shape in tensors:
        begin, end = end, end + byte_size(dtype, shape)
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": (begin, end)}
    header = json_text.encode(entries)
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header


def byte_size(dtype: str, shape: Iterable[int]) -> int:
    """Bytes of a tensor."""
    return prod(shape) * BITS[dtype] // 8


def _header_size(path: Path, prefix: bytes, file_size: int) -> int:
    if len(prefix) < 8:
        raise BadFile(path, f"{file_size} bytes are no safetensors file")
    (size,) = struct.unpack("<Q", prefix)
    if size > LARGEST_HEADER:
        raise BadFile(path, f"the header claims {size:,} bytes; {LARGEST_HEADER:,} are allowed")
    if size > file_size - 8:
        raise BadFile(path, f"the header claims {size:,} bytes, the file has {file_size:,}: not whole")
    return size


def _decode_header(path: Path, text: bytes) -> dict[str, Any]:
    if not text.startswith(b"{"):
        raise BadFile(path, "the header is not a JSON object")
    try:
        header = json_text.decode_strictly(text.decode())
    except (ValueError, RecursionError) as error:
        raise BadFile(path, f"the header is not JSON: {str(error).splitlines()[0]}") from error
    return header


def _tensor(path: Path, name: str, entry: Any, start: int) -> Tensor:
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise BadFile(path, f"tensor {name} needs exactly dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BITS:
        raise BadFile(path, f"tensor {name} has the unknown dtype {dtype}")
    if not _are_counts(shape):
        raise BadFile(path, f"tensor {name} has the shape {shape}")
    if not _are_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise BadFile(path, f"tensor {name} has the data offsets {offsets}")
    begin, end = offsets
    if prod(shape) * BITS[dtype] != 8 * (end - begin):
        raise BadFile(path, f"tensor {name}: {end - begin:,} bytes do not hold {dtype} of shape {shape}")
    return Tensor(name, dtype, tuple(shape), path, start + begin, end - begin)


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def _require_gapless(path: Path, tensors: list[Tensor], start: int, file_size: int) -> None:
    end = start
    for tensor in tensors:
        if tensor.offset < end:
            raise BadFile(path, f"tensor {tensor.name} overlaps the tensor before it")
        if tensor.offset > end:
            raise BadFile(path, f"{tensor.offset - end:,} bytes before tensor {tensor.name} belong to no tensor")
        end = tensor.offset + tensor.size
        if end > file_size:
            fault = f"tensor {tensor.name} ends at byte {end:,}, the file at {file_size:,}: not whole"
            raise BadFile(path, fault)
    if end < file_size:
        raise BadFile(path, f"{file_size - end:,} bytes after the last tensor belong to no tensor")
