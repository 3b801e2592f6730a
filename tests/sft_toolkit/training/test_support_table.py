"""The script that writes docs/training_support.md, on two types, and what it wrote on all."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.usefixtures("no_ranks_before_or_after")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("training_support", ROOT / "benchmarks" / "training_support.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["training_support"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("kind", "mode", "trains"),
    [("llama", "packed", True), ("mamba2", "one after the other", True), ("xlnet", "refused", False)],
)
def test_a_type_trains_to_the_reference_or_is_refused(
    kind: str, mode: str, trains: bool, script: ModuleType, tmp_path: Path
) -> None:
    found = script.examine(kind, tmp_path)
    assert (found.mode, found.trains) == (mode, trains)
    assert found.trains or re.search("logits depend on the tokens after it", found.reason)


def test_the_table_counts_its_rows(script: ModuleType) -> None:
    text = (ROOT / "docs" / "training_support.md").read_text()
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ") and not line.startswith("| -")][1:]
    trained = sum(row[1] in ("packed", "one after the other") for row in rows)
    assert f"Of {len(rows)} causal types {trained} train" in text
    assert trained >= 120
    assert not any("traceback" in row[1] for row in rows)
