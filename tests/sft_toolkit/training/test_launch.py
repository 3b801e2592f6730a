"""Ranks on this machine, before they are started."""

from __future__ import annotations

import pytest
import torch

from sft_toolkit.errors import UsageError
from sft_toolkit.training.launch import launch
from sft_toolkit.training.processes import joined_ranks


def test_more_ranks_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    with pytest.raises(UsageError, match="`nproc` 8: a rank needs a GPU of its own, here are 4"):
        launch(8)


def test_half_a_launchers_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(UsageError, match="RANK is set and WORLD_SIZE is not"), joined_ranks():
        pass
