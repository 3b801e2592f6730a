"""Every variable that the product reads may be set for every command."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sft_toolkit.cli.settings import check_environment

ROOT = Path(__file__).resolve().parents[2]
NAMED = sorted(
    {
        name
        for top in ("cli", "sft_toolkit", "labelers", "packers")
        for path in (ROOT / top).rglob("*.py")
        for name in re.findall(r"KOLIBRI_SFT_[A-Z0-9_]*[A-Z0-9]\b", path.read_text(encoding="utf-8"))
    }
)


@pytest.mark.parametrize("name", NAMED)
def test_a_variable_that_the_sources_name_is_known(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    bare = SimpleNamespace(command=SimpleNamespace(params=[]), auto_envvar_prefix="KOLIBRI_SFT_NONE")
    check_environment(cast(Any, bare))
