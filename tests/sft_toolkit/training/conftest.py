"""One packed folder, and the only rank of a run, for all tests of training."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sft_toolkit.training.processes import Ranks, joined_ranks
from tests.sft_toolkit.training.tiny import counting_documents, write_packed


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_packed(tmp_path_factory.mktemp("training"), counting_documents(60))


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    with joined_ranks() as found:
        yield found
