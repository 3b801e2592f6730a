"""One packed folder, and the only rank of a run, for all tests of training."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch.distributed as dist

from sft_toolkit.training.options import ModelSource, Recipe, TrainOptions
from sft_toolkit.training.processes import Ranks, joined_ranks
from tests.sft_toolkit.training.tiny import counting_documents, tiny_config, write_packed


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_packed(tmp_path_factory.mktemp("training"), counting_documents(60))


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    with joined_ranks() as found:
        yield found


@pytest.fixture
def no_ranks_before_or_after() -> Iterator[None]:
    if dist.is_initialized():
        dist.destroy_process_group()
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.fixture
def options(packed: Path, tmp_path: Path) -> TrainOptions:
    """Six steps of two microbatches, from random weights."""
    tiny_config().save_pretrained(tmp_path / "config")
    recipe = Recipe(steps=6, microbatches=2, order="random", learning_rate=1e-3)
    return TrainOptions(packed, tmp_path / "run", ModelSource(init=tmp_path / "config"), recipe, quiet=True)
