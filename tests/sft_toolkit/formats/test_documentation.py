"""docs/formats.md says what the reader does: its tables are written by it, its keys are the mapping's."""

from __future__ import annotations

import importlib.util
import re

from sft_toolkit.formats.mapping import KEYS
from tests.conftest import ROOT


def test_the_tables_of_data_sets_are_what_the_reader_makes_of_the_cases() -> None:
    spec = importlib.util.spec_from_file_location("data_sets", ROOT / "docs" / "data_sets.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.page() == module.TARGET.read_text(), "run python docs/data_sets.py"


def test_every_key_of_the_mapping_is_explained() -> None:
    page = (ROOT / "docs" / "formats.md").read_text()
    table = page.partition("## The mapping")[2].partition("A **path**")[0]
    assert set(re.findall(r"`([a-z-]+)`", table.partition("| --- | --- |")[2])) >= KEYS.keys()
