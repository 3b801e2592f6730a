from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from sft_toolkit.errors import ToolkitError
from sft_toolkit.shards.documents import DocumentReader, scan
from sft_toolkit.shards.shard_folder import ShardFolder
from tests.token_shards import Document, random_documents, write_token_folder


def read(reader: DocumentReader, document: np.void) -> tuple[str, list[int], list[bool]]:
    tokens, mask = np.empty(document["length"], np.int32), np.empty(document["length"], bool)
    reader.tokens(document, tokens)
    reader.loss_mask(document, mask)
    return reader.name(document), tokens.tolist(), mask.tolist()


def test_documents_are_read_from_where_the_scan_found_them(tmp_path: Path) -> None:
    documents = [Document("Brötchen", [7, 8, 9], [False, True, True]), *random_documents(300)]
    paths = tuple(ShardFolder(write_token_folder(tmp_path / "T", documents, shards=2)).paths)
    reader = pickle.loads(pickle.dumps(DocumentReader(paths)))
    notes = [batch.documents for number, path in enumerate(paths) for batch in scan(path, number)]
    found = [read(reader, document) for document in np.concatenate(notes)]
    assert found == [(document.id, document.tokens, document.mask) for document in documents]


def test_a_shorter_length_reads_the_first_tokens(tmp_path: Path) -> None:
    path = ShardFolder(write_token_folder(tmp_path / "T", [Document("a", [1, 2, 3], [False, True, True])])).paths[0]
    document = next(scan(path, 0)).documents[0]
    document["length"] = 2
    assert read(DocumentReader((path,)), document) == ("a", [1, 2], [False, True])


def test_a_scan_gives_the_data_sets_and_masks_of_a_batch(tmp_path: Path) -> None:
    documents = random_documents(30)
    path = ShardFolder(write_token_folder(tmp_path / "T", documents)).paths[0]
    (batch,) = list(scan(path, 0))
    assert [batch.datasets[code] for code in batch.documents["dataset"]] == [one.dataset or "" for one in documents]
    assert batch.loss_mask(17).tolist() == documents[17].mask


def test_a_file_that_shrank_since_the_scan_is_an_error(tmp_path: Path) -> None:
    path = ShardFolder(write_token_folder(tmp_path / "T", [Document("a", [1] * 60, [True] * 60)])).paths[0]
    document = next(scan(path, 0)).documents[0]
    path.write_bytes(path.read_bytes()[: int(document["tokens_at"]) + 100])
    with pytest.raises(ToolkitError, match="ends at byte"):
        read(DocumentReader((path,)), document)


def test_a_cut_file_is_an_error(tmp_path: Path) -> None:
    path = ShardFolder(write_token_folder(tmp_path / "T", random_documents(50))).paths[0]
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(ToolkitError, match="not a whole Arrow file"):
        list(scan(path, 0))
