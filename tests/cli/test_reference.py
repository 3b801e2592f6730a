"""The reference of the commands is what the commands say of themselves."""

from __future__ import annotations

import importlib.util

from tests.conftest import ROOT


def test_the_reference_is_current() -> None:
    specification = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    assert module.TARGET.read_text(encoding="utf-8") == module.reference(), "run: python docs/reference.py"


def test_every_option_says_what_it_does() -> None:
    lines = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8").splitlines()
    options = [line for line in lines if line.startswith("| `-")]
    assert len(options) > 50
    assert [line for line in options if line.endswith("|  |")] == []
