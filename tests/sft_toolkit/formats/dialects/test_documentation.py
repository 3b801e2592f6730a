"""docs/dialects.md shows what the registry reads: its examples are written from the tests' own writers."""

from __future__ import annotations

import importlib.util

from sft_toolkit.formats.dialects.registry import MARKED
from tests.conftest import ROOT


def test_every_mark_has_its_examples_in_the_documentation() -> None:
    spec = importlib.util.spec_from_file_location("dialects_page", ROOT / "docs" / "dialects.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.TARGET.read_text()
    assert module.page() == page, "run python docs/dialects.py"
    for dialect in MARKED:
        section = page.partition(f"### `{dialect.name}`\n")[2].partition("###")[0]
        assert "weather" in section, dialect.name
