"""Packed sequences as batches for one model, with what the model cannot take refused by name."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedConfig

from sft_toolkit.errors import ToolkitError
from sft_toolkit.training.batch import Batch
from sft_toolkit.training.sequences import PackedFolder, PackedSequence


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads `packed` for a model of `vocabulary` tokens and `positions` places. All raise ToolkitError."""

    packed: PackedFolder
    vocabulary: int
    positions: int
    device: torch.device

    @classmethod
    def of(cls, packed: PackedFolder, config: PreTrainedConfig, device: torch.device) -> Reader:
        return cls(packed, config.vocab_size, getattr(config, "max_position_embeddings", sys.maxsize), device)

    def batch(self, number: int) -> Batch:
        """One sequence; for FILLER, one token without loss."""
        sequence = self.packed.sequence(number)
        require_known_tokens(sequence, self.vocabulary, f"{self.packed.path}: sequence {number}")
        return Batch.of(sequence, self.device)

    def require_fitting_documents(self) -> None:
        """Look at every document that may be longer than the model's positions: d > p only where C > p * p."""
        for number in np.flatnonzero(self.packed.index.cost > self.positions**2):
            if (longest := self.packed.longest_document(int(number))) > self.positions:
                raise ToolkitError(
                    f"{self.packed.path}: sequence {number} has a document of {longest} tokens, "
                    f"the model has {self.positions} positions",
                    "pack with a smaller --capacity and --overlong drop, or extend the model's positions",
                )


def require_known_tokens(sequence: PackedSequence, vocabulary: int, place: str) -> None:
    """Raise ToolkitError that says `place` and the document where a token is none of `vocabulary`."""
    unknown = np.flatnonzero((sequence.input_ids >= vocabulary) | (sequence.input_ids < 0))
    if len(unknown):
        document = int(np.searchsorted(sequence.cu_seqlens, unknown[0], side="right")) - 1
        raise ToolkitError(
            f"{place}, document {sequence.ids[document]!r}: token {sequence.input_ids[unknown[0]]} is outside the "
            f"model's vocabulary of {vocabulary}",
            "render with the model's own tokenizer",
        )
