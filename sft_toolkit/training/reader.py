"""Packed sequences as batches for one model, with what the model cannot take refused by name."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedConfig

from sft_toolkit.errors import ToolkitError
from sft_toolkit.training.batch import Batch
from sft_toolkit.training.model import text_config
from sft_toolkit.training.sequences import PackedFolder, PackedSequence


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads `packed` for a model of `vocabulary` tokens and `positions` places. All raise ToolkitError.

    turning: the longest document up to which a rotary embedding turns all documents alike
    part, parts: which part of a sequence this rank computes
    """

    packed: PackedFolder
    vocabulary: int
    positions: int
    turning: int
    device: torch.device
    part: int = 0
    parts: int = 1

    @classmethod
    def of(
        cls, packed: PackedFolder, config: PreTrainedConfig, device: torch.device, part: int = 0, parts: int = 1
    ) -> Reader:
        text = text_config(config)
        positions = getattr(text, "max_position_embeddings", sys.maxsize)
        return cls(packed, text.vocab_size, positions, turning_alike(text), device, part, parts)

    def batch(self, number: int) -> Batch:
        """This rank's part of one sequence; for FILLER, one token without loss."""
        sequence = self.packed.sequence(number)
        require_known_tokens(sequence, self.vocabulary, f"{self.packed.path}: sequence {number}")
        batch = Batch.of(sequence, self.device)
        return batch if self.parts == 1 else batch.part(self.part, self.parts)

    def require_fitting_documents(self) -> None:
        """Look at every document that may be longer than the model takes: d > p only where C > p * p."""
        most = min(self.positions, self.turning)
        for number in np.flatnonzero(self.packed.index.cost > most**2):
            if (longest := self.packed.longest_document(int(number))) > most:
                document = f"{self.packed.path}: sequence {number} has a document of {longest} tokens"
                if longest > self.positions:
                    raise ToolkitError(
                        f"{document}, the model has {self.positions} positions",
                        "choose a smaller `pack(capacity)` and `pack(overlong=drop)`, or extend the model's positions",
                    )
                raise ToolkitError(
                    f"{document}; beyond {self.turning}, longrope would change the positions of all documents packed "
                    "with it",
                    "choose a smaller `pack(capacity)` and `pack(overlong=drop)`",
                )


def turning_alike(config: PreTrainedConfig) -> int:
    """Where a "longrope" takes other frequencies, by the longest document of a batch; else there is no such place."""
    rope = getattr(config, "rope_parameters", None) or {}
    by_layer = [rope, *(one for one in rope.values() if isinstance(one, dict))]
    changes = [one["original_max_position_embeddings"] for one in by_layer if one.get("rope_type") == "longrope"]
    return min(changes, default=sys.maxsize)


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
