"""Folders of token shards, as `render` writes them, made by hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sft_toolkit.shards.output import BlockReport, OutputFolder, build_manifest
from sft_toolkit.shards.schemas import TOKENS
from sft_toolkit.shards.writer import describe, shard_writer
from sft_toolkit.stage import Counters


@dataclass(frozen=True)
class Document:
    id: str
    tokens: list[int]
    mask: list[bool]
    dataset: str | None = "maths"

    def row(self) -> dict[str, object]:
        return {
            "id": self.id,
            "dataset": self.dataset,
            "effort": "low",
            "input_ids": np.array(self.tokens, np.int32),
            "loss_mask": np.array(self.mask, bool),
            "length": len(self.tokens),
            "loss_tokens": sum(self.mask),
        }


def random_documents(count: int, longest: int = 900, seed: int = 0) -> list[Document]:
    """Documents of heavy-tailed lengths in three data sets, every token and mask bit drawn."""
    rng = np.random.default_rng(seed)
    lengths = np.clip(np.exp(rng.normal(3.5, 1.2, count)), 2, longest).astype(int)
    return [
        Document(
            f"id-{seed}-{index}",
            rng.integers(0, 2**31 - 1, length).tolist(),
            [False, *(rng.random(length - 1) < 0.6).tolist()],
            ("maths", "tools", None)[index % 3],
        )
        for index, length in enumerate(lengths.tolist())
    ]


def write_token_folder(path: Path, documents: list[Document], shards: int = 1, **facts: object) -> Path:
    """Write documents to `shards` shards of about equal size."""
    folder = OutputFolder(path)
    folder.prepare({}, force=False, resume=False)
    reports = []
    for index, part in enumerate(np.array_split(np.arange(len(documents)), shards)):
        with shard_writer(folder.shard_path(index), TOKENS, folder.unfinished) as writer:
            for document in part:
                writer.write(documents[document].row())
        reports.append(BlockReport(index, describe(folder.shard_path(index), writer), Counters()))
    folder.complete(build_manifest("tokens", {}, reports, Counters(), **facts))
    return path
