"""The exported folder, evaluated by plain transformers: it must have the loss that the trainer has.

Equal bytes say that a file was written well; an equal loss says that what was trained is what anyone will run.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM

from sft_toolkit.errors import ToolkitError
from sft_toolkit.training.batch import Batch
from sft_toolkit.training.sequences import PackedFolder, PackedSequence

_DOCUMENTS, _TOKENS = 8, 512
"""At most so many documents, and so many tokens from the beginning of each."""
CHECKED_PARAMETERS = 3_000_000_000
"""Models up to this size are checked without being asked: the check computes on the first rank's CPU, in float32."""
_TOLERANCE = {torch.float32: 1e-4}
_ROUNDED = 2e-2
"""Greatest relative difference of the losses: of float32, and of what was computed or stored in 16 bits."""


def first_documents(packed: PackedFolder) -> PackedSequence:
    """The beginnings of a few documents that have a loss, end to end."""
    tokens, masks, found = [], [], 0
    for number in range(len(packed)):
        sequence = packed.sequence(number)
        for begin, end in pairwise(sequence.cu_seqlens.tolist()):
            part = slice(begin, min(end, begin + _TOKENS))
            if sequence.loss_mask[part].any():
                tokens.append(sequence.input_ids[part])
                masks.append(sequence.loss_mask[part])
                found += 1
            if found == _DOCUMENTS:
                break
        if found == _DOCUMENTS:
            break
    bounds = np.cumsum([0, *map(len, tokens)]).astype(np.int32)
    if not found:  # every loss lies behind the beginnings
        return packed.sequence(int(np.argmax(packed.index.loss_tokens > 0)))
    return PackedSequence(np.concatenate(tokens), np.concatenate(masks), bounds, [])


def plain_loss(folder: Path, batch: Batch) -> float:
    """Mean loss in float32 of the model in `folder`, a document at a time, by transformers alone."""
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, local_files_only=True, trust_remote_code=False
    ).eval()
    total, ids = 0.0, batch.inputs["input_ids"].cpu()
    predictors = batch.predictors.cpu()
    with torch.no_grad():
        for begin, end in pairwise(batch.inputs["cu_seq_lens_q"].tolist()):
            wanted = predictors[(predictors >= begin) & (predictors < end)] - begin
            logits = model(input_ids=ids[:, begin:end], use_cache=False).logits[0, wanted].float()
            total += cross_entropy(logits, ids[0, begin + wanted + 1], reduction="sum").item()
    return total / len(predictors)


def require_same_loss(folder: Path, batch: Batch, trained: float, dtype: torch.dtype, bf16: bool) -> float:
    """The loss of `folder`, which `dtype` was written to. Raises ToolkitError where it is not the `trained` one."""
    found = plain_loss(folder, batch)
    allowed = _ROUNDED if bf16 else _TOLERANCE.get(dtype, _ROUNDED)
    if not abs(found - trained) <= allowed * max(abs(trained), 0.1):
        raise ToolkitError(
            f"{folder}: plain transformers has a loss of {found:.4f} on documents on which the trainer has "
            f"{trained:.4f}: the exported model is not the one that was trained",
            "this is a fault of the trainer for this type of model: train it elsewhere, and report it",
        )
    return found
