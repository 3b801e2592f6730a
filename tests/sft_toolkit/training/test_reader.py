"""What a model cannot take is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from sft_toolkit.errors import ToolkitError
from sft_toolkit.packers import FILLER
from sft_toolkit.training.reader import Reader
from sft_toolkit.training.sequences import PackedFolder
from tests.sft_toolkit.training.tiny import tiny_config, write_packed
from tests.token_shards import Document

CPU = torch.device("cpu")


def document(name: str, tokens: list[int]) -> Document:
    return Document(name, tokens, [False] + [True] * (len(tokens) - 1))


def test_a_batch_says_which_places_predict_which_tokens(tmp_path: Path) -> None:
    documents = [
        Document("a", [5, 6, 7], [False, True, True]),
        Document("b", [8, 9], [False, False]),
        Document("c", [4, 3, 2, 1], [False, False, True, False]),
    ]
    packed = PackedFolder(write_packed(tmp_path, documents, shuffle=False))
    batch = Reader.of(packed, tiny_config(), CPU).batch(0)
    assert batch.inputs["input_ids"].tolist() == [[5, 6, 7, 8, 9, 4, 3, 2, 1]]
    assert batch.inputs["position_ids"].tolist() == [[0, 1, 2, 0, 1, 0, 1, 2, 3]]
    assert batch.inputs["cu_seq_lens_q"].tolist() == [0, 3, 5, 9]
    assert batch.inputs["max_length_q"] == 4
    assert (batch.predictors.tolist(), batch.targets.tolist()) == ([0, 1, 6], [6, 7, 2])


def test_filler_is_a_batch_without_targets(packed: Path) -> None:
    batch = Reader.of(PackedFolder(packed), tiny_config(), CPU).batch(FILLER)
    assert batch.inputs["input_ids"].shape == (1, 1)
    assert len(batch.predictors) == len(batch.targets) == 0


def test_a_token_outside_the_vocabulary_is_named_with_its_document(tmp_path: Path) -> None:
    documents = [document("fine", [1, 255]), document("foreign", [9, 8, 256])]
    reader = Reader.of(PackedFolder(write_packed(tmp_path, documents, shuffle=False)), tiny_config(), CPU)
    with pytest.raises(ToolkitError, match="document 'foreign': token 256 is outside the model's vocabulary of 256"):
        reader.batch(0)


def test_a_document_longer_than_the_models_positions_is_refused_at_the_start(tmp_path: Path) -> None:
    documents = [document(str(number), [1] * length) for number, length in enumerate([30, 30, 41, 30])]
    packed = PackedFolder(write_packed(tmp_path, documents, capacity=131, shuffle=False))
    config = tiny_config()
    config.max_position_embeddings = 41
    Reader.of(packed, config, CPU).require_fitting_documents()
    config.max_position_embeddings = 40
    with pytest.raises(ToolkitError, match="sequence 0 has a document of 41 tokens, the model has 40 positions"):
        Reader.of(packed, config, CPU).require_fitting_documents()


def test_a_document_that_would_change_the_positions_of_others_is_refused(tmp_path: Path) -> None:
    documents = [document("short", [1] * 30), document("long", [1] * 41)]
    packed = PackedFolder(write_packed(tmp_path, documents))
    factors = {"short_factor": [1.0] * 8, "long_factor": [4.0] * 8}
    config = tiny_config("llama")
    config.rope_parameters = {"rope_type": "longrope", "original_max_position_embeddings": 41, **factors}
    Reader.of(packed, config, CPU).require_fitting_documents()
    config.rope_parameters["original_max_position_embeddings"] = 40
    with pytest.raises(ToolkitError, match="has a document of 41 tokens; beyond 40, longrope would change"):
        Reader.of(packed, config, CPU).require_fitting_documents()
