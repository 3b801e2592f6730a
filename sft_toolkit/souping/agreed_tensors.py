"""Which tensors of several checkpoints are averaged, which are copied, and why the rest is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from sft_toolkit.errors import ToolkitError
from sft_toolkit.souping.checkpoint import Checkpoint
from sft_toolkit.souping.float_formats import FORMATS
from sft_toolkit.souping.safetensors_file import BITS, Tensor, byte_size

INTEGERS = frozenset({"BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64"})
_SCALES = ("_scale", "_scale_inv")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One tensor of the output and its sources, in the order of the checkpoints. Integers are copied, if equal."""

    sources: tuple[Tensor, ...]
    dtype: str

    @property
    def name(self) -> str:
        return self.sources[0].name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.sources[0].shape

    @property
    def averaged(self) -> bool:
        return self.sources[0].dtype in FORMATS

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def size(self) -> int:
        """Bytes in the output."""
        return byte_size(self.dtype, self.shape)


def agreed_parameters(checkpoints: Sequence[Checkpoint], dtype: str | None = None) -> list[Parameter]:
    """The output's tensors, wide elements first, so that each is aligned in its file, then by name.

    `dtype` is that of averaged tensors in the output, by default their own; where it is given, the checkpoints may hold
    one tensor in several floating point formats. Raises ToolkitError with the name of the first tensor on which the
    checkpoints do not agree.
    """
    first = checkpoints[0]
    for other in checkpoints[1:]:
        _require_same_names(first, other)
    parameters = []
    for name in sorted(first.tensors):
        sources = tuple(checkpoint.tensors[name] for checkpoint in checkpoints)
        _require_same_layout(sources, dtype)
        for source, checkpoint in zip(sources, checkpoints, strict=True):
            _require_meaning(source, checkpoint)
        kept = sources[0].dtype if dtype is None or sources[0].dtype in INTEGERS else dtype
        parameters.append(Parameter(sources, kept))
    return sorted(parameters, key=lambda parameter: (-BITS[parameter.dtype], parameter.name))


def _require_same_names(first: Checkpoint, other: Checkpoint) -> None:
    for name in sorted(first.tensors.keys() ^ other.tensors.keys()):
        has, lacks = (first, other) if name in first.tensors else (other, first)
        raise ToolkitError(
            f"tensor {name} is in {has.path} but not in {lacks.path}", "average checkpoints of one model"
        )


def _require_same_layout(sources: Sequence[Tensor], dtype: str | None) -> None:
    first = sources[0]
    for other in sources[1:]:
        if first.shape != other.shape:
            fault = f"tensor {first.name} has shape {first.shape} in {first.path} and {other.shape} in {other.path}"
            raise ToolkitError(fault, "average checkpoints of one model")
        if first.dtype != other.dtype and not (dtype and {first.dtype, other.dtype} <= FORMATS.keys()):
            fault = f"tensor {first.name} has dtype {first.dtype} in {first.path} and {other.dtype} in {other.path}"
            floats = {first.dtype, other.dtype} <= FORMATS.keys()
            raise ToolkitError(
                fault,
                "choose the `dtype` of the output, as in BF16" if floats else "average checkpoints of one model",
            )


def _require_meaning(tensor: Tensor, checkpoint: Checkpoint) -> None:
    """Refuse what cannot be averaged as numbers: codes whose value lies in a scale beside them, complex numbers."""
    if tensor.dtype in FORMATS or tensor.dtype in INTEGERS:
        return
    if tensor.dtype.startswith("F"):
        scale = next((tensor.name + end for end in _SCALES if tensor.name + end in checkpoint.tensors), None)
        codes = f"codes scaled by {scale}" if scale else "codes without their scales"
        fault = f"tensor {tensor.name} in {checkpoint.path} holds {tensor.dtype} {codes}, not numbers to average"
        raise ToolkitError(fault, "convert the checkpoint to bfloat16 first")
    raise ToolkitError(f"tensor {tensor.name} in {checkpoint.path} is {tensor.dtype}, which cannot be averaged")
