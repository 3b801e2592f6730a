"""Token shards that are kept out of training, as sequences of each of their data sets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import xxhash
from numpy.typing import NDArray

from sft_toolkit.errors import ToolkitError
from sft_toolkit.json_text import encode
from sft_toolkit.shards.documents import DOCUMENT, DocumentReader, scan
from sft_toolkit.shards.shard_folder import ShardFolder, rendering_of
from sft_toolkit.training.sequences import PackedSequence

_TOKENS_PER_SEQUENCE = 8_192


class HeldOutSet:
    """The documents of finished token folders that carry loss; only where they lie is kept in memory.

    fingerprint: the same for the same shards, in whatever order the folders are given; loss_tokens: of each data set

    Raises ToolkitError where a folder is unfinished, damaged, of another kind or rendered otherwise than the others,
    where a document names no data set, and where a data set has no loss tokens.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        opened = sorted((ShardFolder(path, "tokens") for path in folders), key=_checksums)
        rendering_of(opened)
        for folder in opened:
            folder.verify(range(len(folder.paths)))
        self.fingerprint = xxhash.xxh3_64_hexdigest(encode([_checksums(folder) for folder in opened]))
        self.loss_tokens: Counter[str] = Counter()
        paths = tuple(path for folder in opened for path in folder.paths)
        self._reader = DocumentReader(paths)
        self._documents = self._scan(paths)
        if lacking := sorted(name for name in self.datasets if not self.loss_tokens[name]):
            raise ToolkitError(f"{lacking[0]}: no loss tokens in the held-out set", "leave it out, or see its masks")

    @property
    def datasets(self) -> list[str]:
        return sorted(self._documents)

    def sequences(self, dataset: str) -> Iterator[PackedSequence]:
        """Its documents end to end in their order, 8,192 tokens at a time; a longer document stands alone."""
        documents = self._documents[dataset]
        for place in _groups(documents["length"].tolist(), _TOKENS_PER_SEQUENCE):
            yield self._joined(documents[place])

    def _scan(self, paths: tuple[Path, ...]) -> dict[str, NDArray[np.void]]:
        """DOCUMENT[n] of each data set, documents without loss left out."""
        found: defaultdict[str, list[np.void]] = defaultdict(list)
        for number, path in enumerate(paths):
            for batch in scan(path, number):
                for row, document in enumerate(batch.documents):
                    dataset = batch.datasets[document["dataset"]]
                    documents = found[dataset]
                    mask = batch.loss_mask(row)
                    _require_fit(path, batch.ids[row].as_py(), dataset, mask)
                    if mask.any():
                        documents.append(document)
                        self.loss_tokens[dataset] += int(np.count_nonzero(mask))
        if not found:
            raise ToolkitError(f"{paths[0].parent if paths else 'the held-out set'}: no documents", "was any rendered?")
        return {dataset: np.array(documents, DOCUMENT) for dataset, documents in found.items()}

    def _joined(self, documents: NDArray[np.void]) -> PackedSequence:
        bounds = np.append(0, np.cumsum(documents["length"])).astype(np.int32)
        tokens, mask = np.empty(bounds[-1], np.int32), np.empty(bounds[-1], np.bool_)
        for document, begin, end in zip(documents, bounds[:-1], bounds[1:], strict=True):
            self._reader.tokens(document, tokens[begin:end])
            self._reader.loss_mask(document, mask[begin:end])
        return PackedSequence(tokens, mask, bounds, [self._reader.name(document) for document in documents])


def _checksums(folder: ShardFolder) -> list[str]:
    return [shard["blake2b"] for shard in folder.manifest["shards"]]


def _require_fit(path: Path, name: str, dataset: str, mask: NDArray[np.bool_]) -> None:
    if not dataset:
        raise ToolkitError(f"{path}: record {name!r} names no data set", "`convert(dataset)` names one")
    if mask[:1].any():
        raise ToolkitError(
            f"{path}: record {name!r} has loss on its first token, which nothing predicts",
            "write the shard again with kolibri-sft render",
        )


def _groups(lengths: list[int], most: int) -> Iterator[slice]:
    """Neighbours of at most `most` tokens together: [3, 4, 9, 1] by 8 is [0:2], [2:3], [3:4]."""
    begin = tokens = 0
    for place, length in enumerate(lengths):
        if place > begin and tokens + length > most:
            yield slice(begin, place)
            begin, tokens = place, 0
        tokens += length
    if lengths:
        yield slice(begin, len(lengths))
