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
    bounds = torch.tensor(np.append(0, np.cumsum(lengths)), dtype=torch.int32, device=device)
    longest = int(lengths.max())
    return {
        "input_ids": input_ids[None].to(device),
        "position_ids": torch.from_numpy(positions(lengths))[None].to(device),
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
        return cls(inputs, (trained - 1).to(device), input_ids[trained].to(device))
