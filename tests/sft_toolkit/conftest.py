"""What tests of several packages begin with: folders with tiny checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.sft_toolkit.souping.checkpoints import CONFIG, Tensors, write_safetensors

WriteCheckpoint = Callable[..., Path]


@pytest.fixture
def write_checkpoint(tmp_path: Path) -> WriteCheckpoint:
    """`write_checkpoint("a", {"w": ("BF16", patterns)})`: a folder with weights, config and whatever `files` holds."""

    def write(
        name: str, tensors: Tensors, config: Mapping[str, Any] | None = CONFIG, files: Mapping[str, str] | None = None
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        write_safetensors(folder / "model.safetensors", tensors)
        if config is not None:
            (folder / "config.json").write_text(json.dumps(config))
        for file, text in (files or {}).items():
            (folder / file).write_text(text)
        return folder

    return write
