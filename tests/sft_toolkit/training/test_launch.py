"""Ranks on this machine, before they are started."""

from __future__ import annotations

import pytest
import torch

from sft_toolkit.errors import UsageError
from sft_toolkit.training.launch import launch


def test_more_ranks_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    with pytest.raises(UsageError, match="--nproc 8: a rank needs a GPU of its own, here are 4"):
        launch(8)
