"""A packed sequence as the tensors that a causal LM of transformers takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sft_toolkit.training.sequences import PackedSequence


def positions(lengths: NDArray[np.int32]) -> NDArray[np.int64]:
    """Places within each document: int64[T]. lengths: int32[D]."""
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    return np.arange(lengths.sum()) - np.repeat(starts, lengths)


def model_inputs(input_ids: Tensor, lengths: NDArray[np.int32], device: torch.device | str = "cpu") -> dict[str, Any]:
    """What a model's forward takes for documents end to end. input_ids: int64[T]; lengths: int32[D]."""
    bounds = _moved(torch.tensor(np.append(0, np.cumsum(lengths)), dtype=torch.int32), device)
    longest = int(lengths.max())
    return {
        "input_ids": _moved(input_ids[None], device),
        "position_ids": _moved(torch.from_numpy(positions(lengths))[None], device),
        "cu_seq_lens_q": bounds,
        "cu_seq_lens_k": bounds,
        "max_length_q": longest,
        "max_length_k": longest,
    }


@dataclass(frozen=True, slots=True)
class Batch:
    """One microbatch of one rank.

    inputs: what the model's forward takes; predictors: int64[n], places whose next token is trained; targets: int64[n]
    """

    inputs: dict[str, Any]
    predictors: Tensor
    targets: Tensor

    @classmethod
    def of(cls, sequence: PackedSequence, device: torch.device | str = "cpu") -> Batch:
        input_ids = torch.from_numpy(sequence.input_ids.astype(np.int64))
        trained = torch.from_numpy(np.flatnonzero(sequence.loss_mask))
        inputs = model_inputs(input_ids, sequence.lengths, device)
        return cls(inputs, _moved(trained - 1, device), _moved(input_ids[trained], device))


def _moved(tensor: Tensor, device: torch.device | str) -> Tensor:
    """On CUDA without waiting for the kernels under way, so that the next batch is read while this one is computed."""
    on_cuda = torch.device(device).type == "cuda"
    return (tensor.pin_memory() if on_cuda else tensor).to(device, non_blocking=on_cuda)
