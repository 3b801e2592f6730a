"""The built-in held-out loss, beside plain transformers that reads one document after the other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM

from sft_toolkit.errors import ToolkitError
from sft_toolkit.mergemix.held_out_loss import HeldOutLoss
from sft_toolkit.mergemix.held_out_set import HeldOutSet
from tests.sft_toolkit.training.tiny import counting_documents, tiny_config, write_packed
from tests.token_shards import Document, write_token_folder


def model_of(folder: Path, family: str = "qwen3", tied: bool = False) -> Path:
    torch.manual_seed(1)
    AutoModelForCausalLM.from_config(tiny_config(family, tied)).save_pretrained(folder)
    return folder


def documents_of(dataset: str, count: int, longest: int, seed: int) -> list[Document]:
    documents = counting_documents(count, longest, seed)
    return [replace(document, id=f"{dataset}-{document.id}", dataset=dataset) for document in documents]


def plain_loss(model: Path, documents: list[Document]) -> float:
    """Mean over the loss tokens, by the attention and the logits of transformers, one document a call."""
    plain = AutoModelForCausalLM.from_pretrained(model, attn_implementation="eager", dtype=torch.float32)
    total, count = 0.0, 0
    for document in documents:
        ids = torch.tensor([document.tokens])
        with torch.no_grad():
            losses = F.cross_entropy(plain(input_ids=ids).logits[0, :-1], ids[0, 1:], reduction="none")
        trained = torch.tensor(document.mask[1:])
        total += losses[trained].double().sum().item()
        count += int(trained.sum())
    return total / count


@pytest.mark.parametrize(("family", "tied"), [("qwen3", True), ("llama", False), ("qwen3_moe", False)])
def test_the_loss_is_that_of_each_document_alone(family: str, tied: bool, tmp_path: Path) -> None:
    """Two data sets over two folders and several sequences; a document without loss counts for nothing."""
    maths, chat = documents_of("maths", 60, 500, 0), documents_of("chat", 20, 60, 1)
    silent = Document("silent", [5, 6, 7], [False] * 3, "chat")
    first = write_token_folder(tmp_path / "first", [*maths[:30], silent, *chat], shards=3)
    second = write_token_folder(tmp_path / "second", maths[30:])
    model = model_of(tmp_path / "model", family, tied)
    assert sum(len(document.tokens) for document in maths) > 8_192
    expected = {"loss/chat": plain_loss(model, chat), "loss/maths": plain_loss(model, maths)}
    scorer = HeldOutLoss([first, second])
    found = scorer.run(model)
    assert found == pytest.approx({"loss": fmean(expected.values()), **expected}, rel=1e-6)
    assert scorer.run(model) == found == HeldOutLoss([second, first]).run(model), "the same to the last bit"


def test_neighbours_share_a_sequence_and_a_long_document_stands_alone(tmp_path: Path) -> None:
    lengths = [3_000, 5_192, 1, 9_000, 8_000]
    documents = [
        Document(str(place), [place] * length, [False, *[True] * (length - 1)]) for place, length in enumerate(lengths)
    ]
    documents[2] = Document("2", [2], [False])
    held_out = HeldOutSet([write_token_folder(tmp_path / "tokens", documents)])
    assert held_out.loss_tokens == {"maths": 2_999 + 5_191 + 8_999 + 7_999}
    sequences = list(held_out.sequences("maths"))
    assert [sequence.ids for sequence in sequences] == [["0", "1"], ["3"], ["4"]]
    assert sequences[0].cu_seqlens.tolist() == [0, 3_000, 8_192]
    assert sequences[0].input_ids.tolist() == [0] * 3_000 + [1] * 5_192
    assert sequences[0].loss_mask.nonzero()[0].tolist() == [*range(1, 3_000), *range(3_001, 8_192)]


def test_a_held_out_set_is_known_by_its_shards(tmp_path: Path) -> None:
    one, two = (
        write_token_folder(tmp_path / name, documents_of("maths", 5, 20, seed)) for seed, name in enumerate("ab")
    )
    copy = write_token_folder(tmp_path / "copy", documents_of("maths", 5, 20, 0))
    assert HeldOutSet([one]).fingerprint == HeldOutSet([copy]).fingerprint
    assert HeldOutSet([one, two]).fingerprint == HeldOutSet([two, one]).fingerprint
    assert len({HeldOutSet(folders).fingerprint for folders in ([one], [two], [one, two])}) == 3


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([Document("a", [1, 2], [False, True], None)], "record 'a' names no data set"),
        ([Document("a", [1, 2], [True, True])], "record 'a' has loss on its first token"),
        ([Document("a", [1, 2], [False, True]), Document("b", [1], [False], "chat")], "chat: no loss tokens"),
        ([], "no documents"),
    ],
)
def test_what_cannot_be_held_out_is_refused(documents: list[Document], message: str, tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match=message):
        HeldOutSet([write_token_folder(tmp_path / "tokens", documents)])


def test_packed_and_damaged_folders_are_refused(tmp_path: Path) -> None:
    packed = write_packed(tmp_path, counting_documents(5))
    with pytest.raises(ToolkitError, match="holds packed shards, not tokens shards"):
        HeldOutSet([packed])
    shard = next((tmp_path / "tokens").glob("*.arrow"))
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    with pytest.raises(ToolkitError, match="do not match the checksum"):
        HeldOutSet([tmp_path / "tokens"])


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([9, 256], "held-out maths, document 'odd': token 256 is outside the model's vocabulary of 256"),
        ([9] * 513, "held-out maths: document 'odd' has 513 tokens, the model takes at most 512 beside"),
    ],
)
def test_a_document_that_the_model_cannot_take_is_named(tokens: list[int], message: str, tmp_path: Path) -> None:
    odd = Document("odd", tokens, [False, *[True] * (len(tokens) - 1)])
    scorer = HeldOutLoss([write_token_folder(tmp_path / "tokens", [Document("fine", [1, 2], [False, True]), odd])])
    with pytest.raises(ToolkitError, match=message):
        scorer.run(model_of(tmp_path / "model"))


def test_a_model_with_nan_is_named_for_that(tmp_path: Path) -> None:
    model = AutoModelForCausalLM.from_config(tiny_config())
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight[0, 0] = float("nan")
    model.save_pretrained(tmp_path / "model")
    scorer = HeldOutLoss([write_token_folder(tmp_path / "tokens", counting_documents(5))])
    with pytest.raises(ToolkitError, match=r"model.layers.1.mlp.up_proj.weight holds what is not finite"):
        scorer.run(tmp_path / "model")
