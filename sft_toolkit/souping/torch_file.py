"""Files that torch.save wrote (.bin, .pt): where each tensor lies in them, read without running what they hold.

`weights_only=True` builds tensors and plain containers and refuses every other object of the pickle. Under
FakeTensorMode torch reads no data either, and says at which byte of the file each storage begins.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.souping.safetensors_file import Tensor, byte_size

SUFFIXES = (".bin", ".pt", ".pth")
_AGAIN = "save it again as safetensors: `save_pretrained` does"
_DTYPES = {
    "bfloat16": "BF16",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
}


def read_torch_tensors(path: Path) -> list[Tensor]:
    """The tensors of a file in the order of their names.

    Raises UsageError without torch, ToolkitError for a file that holds anything but tensors by name.
    """
    if find_spec("torch") is None:
        raise UsageError(
            f"{path}: torch is not installed, which reads such files", "in the checkout: pip install '.[train]'"
        )
    entries = _entries(path)
    if not isinstance(entries, dict) or not entries:
        raise ToolkitError(f"{path}: no state dict of tensors by name", _AGAIN)
    return [_tensor(path, str(name), entries[name]) for name in sorted(entries, key=str)]


def _entries(path: Path) -> Any:
    import torch
    from torch._subclasses import FakeTensorMode

    try:
        with FakeTensorMode():
            return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        hint = "only tensors are read, for loading other objects would run code; " + _AGAIN
        raise ToolkitError(f"{path}: holds more than tensors, or is no file of torch.save", hint) from error
    except (OSError, EOFError, RuntimeError, ValueError) as error:
        raise ToolkitError(
            f"{path}: cannot be read: {(str(error) or type(error).__name__).splitlines()[0]}", "download it again"
        ) from error


def _tensor(path: Path, name: str, found: Any) -> Tensor:
    import torch

    if not isinstance(found, torch.Tensor):
        raise ToolkitError(f"{path}: {name} is {type(found).__name__}, not a tensor", _AGAIN)
    dtype = _DTYPES.get(str(found.dtype).removeprefix("torch."))
    begin = getattr(found.untyped_storage(), "_checkpoint_offset", None)
    if dtype is None or begin is None or found.layout is not torch.strided or not found.is_contiguous():
        fault = f"tensor {name} in {path} is {found.dtype} in a layout or file format that cannot be read in place"
        raise ToolkitError(fault, _AGAIN)
    shape = tuple(found.shape)
    offset = begin + found.storage_offset() * found.element_size()
    return Tensor(name, dtype, shape, path, offset, byte_size(dtype, shape))
