"""What is said where a model's tokenizer or template is not the one that its shards were rendered with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sft_toolkit.training.options import ModelSource
from sft_toolkit.training.rendering_check import rendering_warnings
from tests.conftest import RunCli


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory, sample_data: Path, run_cli: RunCli) -> Path:
    folder = tmp_path_factory.mktemp("rendered")
    source = sample_data / "handwritten.jsonl"
    for command in (
        ("render", source, "--tokenizer", sample_data / "tokenizer", "-o", folder / "tokens"),
        ("pack", folder / "tokens", "-o", folder / "packed", "--capacity", 16384),
    ):
        done = run_cli(*command)
        assert done.returncode == 0, done.stderr.decode()
    return folder / "packed"


@pytest.fixture
def model(sample_data: Path, tmp_path: Path) -> Path:
    """A checkpoint's folder, as far as its tokenizer goes."""
    return Path(shutil.copytree(sample_data / "tokenizer", tmp_path / "model"))


def test_the_same_tokenizer_and_template_raise_no_warning(packed: Path, model: Path, sample_data: Path) -> None:
    assert list(rendering_warnings(packed, ModelSource(checkpoint=model))) == []
    init = ModelSource(init=sample_data / "tiny_qwen3.json", tokenizer=model)
    assert list(rendering_warnings(packed, init)) == []


def test_another_special_token_is_another_tokenizer(packed: Path, model: Path) -> None:
    config = json.loads((model / "tokenizer_config.json").read_text())
    (model / "tokenizer_config.json").write_text(json.dumps({**config, "add_bos_token": True}))
    (warning,) = rendering_warnings(packed, ModelSource(checkpoint=model))
    assert warning.startswith(f"{packed}: rendered with another tokenizer than that of {model}")


def test_another_template_is_told(packed: Path, model: Path) -> None:
    template = model / "chat_template.jinja"
    template.write_text(template.read_text() + "\n")
    (warning,) = rendering_warnings(packed, ModelSource(checkpoint=model))
    assert warning.startswith(f"{packed}: rendered with another chat template than that of {model}")


def test_a_model_without_a_tokenizer_cannot_be_compared(packed: Path, model: Path, sample_data: Path) -> None:
    (model / "tokenizer.json").unlink()
    assert list(rendering_warnings(packed, ModelSource(checkpoint=model))) == []
    (warning,) = rendering_warnings(packed, ModelSource(init=sample_data / "tiny_qwen3.json"))
    assert warning.startswith("no tokenizer will lie beside the trained model")
