"""Models and packed folders small enough to train in seconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from transformers import LlamaConfig, PreTrainedConfig, Qwen3Config, Qwen3MoeConfig

from sft_toolkit.running.options import RunOptions
from sft_toolkit.stages.pack.two_passes import PackOptions, run_pack
from sft_toolkit.training.options import TrainOptions
from tests.token_shards import Document, write_token_folder

VOCABULARY = 256
_SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}


def tiny_config(family: str = "qwen3", tied: bool = False) -> PreTrainedConfig:
    """A model of about 100,000 parameters: qwen3, llama or qwen3_moe."""
    shape = {**_SHAPE, "tie_word_embeddings": tied}
    match family:
        case "qwen3":
            return Qwen3Config(**shape)
        case "llama":
            return LlamaConfig(**shape)
        case "qwen3_moe":
            return Qwen3MoeConfig(**shape, **_EXPERTS)
    raise ValueError(family)


def counting_documents(count: int, longest: int = 60, seed: int = 0) -> list[Document]:
    """Documents that count in threes from a random start: a tiny model learns them in a few steps."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, longest, count).tolist()
    return [
        Document(
            f"count-{number}",
            ((int(rng.integers(VOCABULARY)) + 3 * np.arange(length)) % VOCABULARY).tolist(),
            [False, *(rng.random(length - 1) < 0.7).tolist()],
        )
        for number, length in enumerate(lengths)
    ]


def write_packed(
    folder: Path,
    documents: list[Document],
    capacity: int = 128,
    shuffle: bool = True,
    rows_per_shard: int = 8,
    labels: bool = False,
) -> Path:
    """Pack documents into `folder`/packed, by the stage itself."""
    tokens = write_token_folder(folder / "tokens", documents)
    run = RunOptions([str(tokens)], output=str(folder / "packed"), workers=1, rows_per_shard=rows_per_shard)
    run_pack(PackOptions(capacity=capacity, shuffle=shuffle, labels=labels), run)
    return folder / "packed"


def rows(options: TrainOptions) -> list[dict[str, Any]]:
    """What a run reported."""
    return [json.loads(line) for line in (options.output / "metrics.jsonl").read_text().splitlines()]


def losses(options: TrainOptions) -> list[float]:
    return [row["loss"] for row in rows(options) if "loss" in row]
