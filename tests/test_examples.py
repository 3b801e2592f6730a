"""The `>>>` examples in docstrings run, and give what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

from tests.conftest import ROOT

FOLDERS = {"sft_toolkit": "sft_toolkit", "labelers": "sft_toolkit.labelers", "packers": "sft_toolkit.packers"}


def modules_with_examples() -> list[str]:
    """Names of all modules whose source holds an example."""
    return [
        ".".join([package, *path.relative_to(ROOT / folder).with_suffix("").parts])
        for folder, package in FOLDERS.items()
        for path in sorted((ROOT / folder).rglob("*.py"))
        if ">>> " in path.read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize("name", modules_with_examples())
def test_an_example_gives_what_it_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # examples name files of the checkout
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("name", ["chat.renderer", "packers.next_k_fit", "packers.window_plan", "tool_calls.compare"])
def test_the_interface_for_python_has_examples(name: str) -> None:
    assert f"sft_toolkit.{name}" in modules_with_examples()
