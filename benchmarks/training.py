"""Tokens per second on the CPU, forward and backward: packed with attention per document, beside what is usual.

    python benchmarks/training.py [CAPACITY...]     default: 2048 8192

The same documents with heavy-tailed lengths, half of their tokens trained, the same model of 17 M parameters:

    per document   packed sequences, attention per document, loss over trained tokens alone (this package)
    masked         the same sequences, SDPA under a boolean mask of [T, T], loss over whole logits (transformers)
    padded         batches of as many documents as a sequence holds, padded to the longest, in random order
    sorted padded  the same, documents sorted by length before they are cut into batches

Tokens count without padding.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import torch
from transformers import AutoModelForCausalLM, Qwen3Config

from sft_toolkit.packers import next_k_fit
from sft_toolkit.training.attention import ATTENTION, register_attention
from sft_toolkit.training.batch import Batch, model_inputs
from sft_toolkit.training.model import PackedModel
from sft_toolkit.training.packed_shards import IGNORED
from sft_toolkit.training.sequences import PackedSequence

TOKENS = 16_384
SHAPE = {
    "vocab_size": 8192,
    "hidden_size": 384,
    "intermediate_size": 1024,
    "num_hidden_layers": 6,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 32768,
    "tie_word_embeddings": True,
}


Steps = list[Callable[[], None]]


def documents_of(capacity: int) -> list[np.ndarray]:
    """Token ids of documents that fill about TOKENS tokens of sequences, 30 in each."""
    rng = np.random.default_rng(0)
    mean = capacity / 30
    lengths = np.clip(np.exp(rng.normal(np.log(mean) - 0.5, 1.0, 30 * TOKENS // capacity)), 2, capacity // 2).astype(
        int
    )
    return [rng.integers(SHAPE["vocab_size"], size=length) for length in lengths]


def packed_of(documents: list[np.ndarray], capacity: int) -> list[PackedSequence]:
    packing = next_k_fit([len(document) for document in documents], capacity)
    groups = np.split(packing.documents, packing.offsets[1:-1])
    return [_sequence([documents[number] for number in group]) for group in groups]


def _sequence(documents: list[np.ndarray]) -> PackedSequence:
    bounds = np.cumsum([0, *map(len, documents)]).astype(np.int32)
    mask = np.arange(bounds[-1]) % 2 == 1
    mask[bounds[:-1]] = False
    return PackedSequence(np.concatenate(documents).astype(np.int32), mask, bounds, [])


def per_document(sequences: list[PackedSequence]) -> Steps:
    register_attention()
    model = PackedModel(AutoModelForCausalLM.from_config(Qwen3Config(**SHAPE), attn_implementation=ATTENTION))

    def step(batch: Batch) -> None:
        (model(batch) / len(batch.targets)).backward()

    return [partial(step, Batch.of(sequence)) for sequence in sequences]


def masked(sequences: list[PackedSequence]) -> Steps:
    return _whole_logits(_masked_inputs(sequence) for sequence in sequences)


def _masked_inputs(sequence: PackedSequence) -> dict[str, torch.Tensor]:
    tokens = torch.from_numpy(sequence.input_ids.astype(np.int64))
    inputs = model_inputs(tokens, sequence.lengths)
    document = torch.from_numpy(np.repeat(np.arange(len(sequence.lengths)), sequence.lengths))
    allowed = (document[:, None] == document).tril()
    return {
        "input_ids": inputs["input_ids"],
        "position_ids": inputs["position_ids"],
        "attention_mask": allowed[None, None],
        "labels": torch.where(torch.from_numpy(sequence.loss_mask), tokens, IGNORED)[None],
    }


def padded(documents: list[np.ndarray], per_batch: int) -> Steps:
    batches = [documents[first : first + per_batch] for first in range(0, len(documents), per_batch)]
    return _whole_logits(map(_padded_inputs, batches))


def _padded_inputs(documents: list[np.ndarray]) -> dict[str, torch.Tensor]:
    longest = max(map(len, documents))
    input_ids = torch.zeros(len(documents), longest, dtype=torch.int64)
    labels = torch.full_like(input_ids, IGNORED)
    attention_mask = torch.zeros_like(input_ids)
    for row, document in enumerate(documents):
        input_ids[row, : len(document)] = torch.from_numpy(document)
        labels[row, 1 : len(document) : 2] = torch.from_numpy(document[1::2])
        attention_mask[row, : len(document)] = 1
    return {"input_ids": input_ids, "attention_mask": attention_mask, "labels": labels}


def _whole_logits(batches: Iterable[dict[str, torch.Tensor]]) -> Steps:
    model = AutoModelForCausalLM.from_config(Qwen3Config(**SHAPE), attn_implementation="sdpa")

    def step(inputs: dict[str, torch.Tensor]) -> None:
        model(**inputs, use_cache=False).loss.backward()

    return [partial(step, inputs) for inputs in batches]


def seconds(steps: Steps) -> float:
    """The better of two passes over all steps, after one step to warm up."""
    steps[0]()
    found = []
    for _ in range(2):
        begin = time.perf_counter()
        for step in steps:
            step()
        found.append(time.perf_counter() - begin)
    return min(found)


def main() -> None:
    torch.manual_seed(0)
    for capacity in map(int, sys.argv[1:] or ["2048", "8192"]):
        documents = documents_of(capacity)
        sequences = packed_of(documents, capacity)
        per_batch = round(len(documents) / len(sequences))
        by_length = sorted(documents, key=len)
        tokens = sum(map(len, documents))
        print(f"\n{len(sequences)} sequences of {capacity:,}: {len(documents)} documents, {tokens:,} tokens")
        ways = {
            "per document": per_document(sequences),
            "masked": masked(sequences),
            "padded": padded(documents, per_batch),
            "sorted padded": padded(by_length, per_batch),
        }
        fastest = None
        for name, steps in ways.items():
            rate = tokens / seconds(steps)
            fastest = fastest or rate
            print(f"{name:16}{rate:10,.0f} tokens/s   {fastest / rate:5.2f} times slower", flush=True)


if __name__ == "__main__":
    main()
