"""The examples in docs/training.md, run as they stand."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from sft_toolkit.training.batch import Batch
from sft_toolkit.training.model import PackedModel
from sft_toolkit.training.sequences import PackedFolder
from tests.conftest import ROOT
from tests.sft_toolkit.training.tiny import tiny_config, write_packed
from tests.token_shards import Document


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "training.md").read_text(), re.DOTALL)


def test_the_example_with_transformers_trainer_runs(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(packed, tmp_path / "packed")
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(tiny_config()).save_pretrained(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    exec(examples()[0], {})
    assert "train_loss" in capsys.readouterr().out


def save_tokenizer(folder: Path) -> None:
    words = Tokenizer(WordLevel({"<eos>": 0, "<unk>": 1}, unk_token="<unk>"))
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<eos>", unk_token="<unk>").save_pretrained(folder)


@pytest.fixture
def three_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sequence of 26, 9 and 29 tokens in `packed`, with labels, beside a model; it is the working folder."""
    documents = [
        Document(f"d{length}", [(7 * place + length) % 256 for place in range(length)], [False] + [True] * (length - 1))
        for length in (26, 9, 29)
    ]
    write_packed(tmp_path, documents, capacity=64, shuffle=False, labels=True)
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(tiny_config()).save_pretrained(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def require_our_loss(trainer: Any) -> None:
    """Their next batch has the boundaries of the documents, and their loss is ours."""
    (batch,) = trainer.get_train_dataloader()
    assert batch["cu_seq_lens_q"].tolist() == [0, 26, 35, 64]
    ours = Batch.of(
        next(PackedFolder(path).sequence(0) for path in ("packed", "packed-with-labels") if Path(path).exists())
    )
    with torch.no_grad():
        theirs = trainer.compute_loss(trainer.model, batch, num_items_in_batch=torch.tensor(len(ours.targets)))
        expected = PackedModel(trainer.model)(ours) / len(ours.targets)
    assert theirs.item() == pytest.approx(expected.item(), rel=1e-6)


def test_trl_sees_the_documents_of_a_packed_row_and_computes_our_loss(three_documents: Path) -> None:
    (three_documents / "packed").rename(three_documents / "packed-with-labels")
    save_tokenizer(three_documents / "model")
    found: dict[str, Any] = {}
    exec(examples()[1], found)
    assert found["trainer"].state.global_step == 3
    require_our_loss(found["trainer"])


def test_the_flattening_collator_makes_the_same_boundaries_and_loss(three_documents: Path) -> None:
    found: dict[str, Any] = {}
    exec(examples()[2], found)
    assert found["trainer"].state.global_step == 3
    require_our_loss(found["trainer"])
