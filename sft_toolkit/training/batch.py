"""A packed sequence as the tensors that a causal LM of transformers takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

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

    def part(self, number: int, parts: int) -> Batch:
        """Tokens of one of several ranks that share the batch, with the boundaries of all its documents.

        What the tokens lack to equal parts is a document of its own, without loss.
        """
        tokens = self.inputs["input_ids"].size(1)
        size = -(-tokens // parts)
        lacking = size * parts - tokens
        begin = number * size
        inputs = dict(self.inputs)
        for name in ("input_ids", "position_ids"):
            inputs[name] = pad(inputs[name], (0, lacking))[:, begin : begin + size]
        if lacking:
            for name in ("cu_seq_lens_q", "cu_seq_lens_k"):
                inputs[name] = pad(inputs[name], (0, 1), value=size * parts)
            for name in ("max_length_q", "max_length_k"):
                inputs[name] = max(inputs[name], lacking)
        own = (self.predictors >= begin) & (self.predictors < begin + size)
        return Batch(inputs, self.predictors[own] - begin, self.targets[own])


def _moved(tensor: Tensor, device: torch.device | str) -> Tensor:
    """On CUDA without waiting for the kernels under way, so that the next batch is read while this one is computed."""
    on_cuda = torch.device(device).type == "cuda"
    return (tensor.pin_memory() if on_cuda else tensor).to(device, non_blocking=on_cuda)
