"""An output head that a file holds although the config ties it to the embedding.

Some savers write it, others do not, and a model that is loaded takes the embedding anyway. Where its bytes are the
embedding's it says nothing and is left out; where they are not, nobody knows which of the two was meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

from sft_toolkit.errors import ToolkitError
from sft_toolkit.souping.checkpoint import Checkpoint
from sft_toolkit.souping.config_meaning import read_object, ties_embeddings
from sft_toolkit.souping.safetensors_file import Tensor

_HEADS = ("lm_head.weight", "embed_out.weight", "lm_head.decoder.weight", "cls.predictions.decoder.weight")
_EMBEDDINGS = (
    "embed_tokens.weight",
    "wte.weight",
    "embed_in.weight",
    "word_embeddings.weight",
    "tok_embeddings.weight",
    "shared.weight",
)
_READ = 1 << 20
"""Bytes at a time."""


def without_tied_head(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint without a head that repeats the embedding. Raises ToolkitError for one that is tied but differs.

    Checkpoints whose config does not tie them, and bare files without a config, come back as they are.
    """
    heads = [name for name in checkpoint.tensors if _ends(name, _HEADS)]
    embeddings = [tensor for name, tensor in sorted(checkpoint.tensors.items()) if _ends(name, _EMBEDDINGS)]
    if not heads or not embeddings or checkpoint.config is None:
        return checkpoint
    if not ties_embeddings(read_object(checkpoint.config)):
        return checkpoint
    left_out = {}
    for name in heads:
        head = checkpoint.tensors[name]
        same = next((embedding for embedding in embeddings if _equal(head, embedding)), None)
        if same is None:
            raise ToolkitError(
                f"tensor {name} in {head.path} is not {embeddings[0].name}, though tie_word_embeddings is true",
                "save the model again, or set tie_word_embeddings to false in all of the checkpoints",
            )
        left_out[name] = f"tied: its bytes are those of {same.name}"
    tensors = {name: tensor for name, tensor in checkpoint.tensors.items() if name not in left_out}
    return replace(checkpoint, tensors=tensors, left_out=left_out)


def _ends(name: str, endings: tuple[str, ...]) -> bool:
    return any(name == ending or name.endswith(f".{ending}") for ending in endings)


def _equal(one: Tensor, two: Tensor) -> bool:
    if (one.dtype, one.shape) != (two.dtype, two.shape):
        return False
    return all(first == second for first, second in zip_longest(_pieces(one), _pieces(two)))


def _pieces(tensor: Tensor) -> Iterator[bytes]:
    with tensor.path.open("rb") as file:
        file.seek(tensor.offset)
        left = tensor.size
        while left:
            piece = file.read(min(left, _READ))
            if not piece:
                raise ToolkitError(f"{tensor.path}: became shorter while tensor {tensor.name} was read")
            left -= len(piece)
            yield piece
