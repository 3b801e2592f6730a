"""Training on packed shards: the bundled FSDP trainer, and what other trainers need to take the same data.

More than 20 modules, because the parts of one trainer (data order, model, loss, checkpoints, reports) stay together.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sft_toolkit.training.attention import ATTENTION, register_attention
    from sft_toolkit.training.packed_shards import PackedShards, collate_packed

__all__ = ["ATTENTION", "PackedShards", "collate_packed", "register_attention"]

_HOMES = {
    "ATTENTION": "attention",
    "register_attention": "attention",
    "PackedShards": "packed_shards",
    "collate_packed": "packed_shards",
}


def __getattr__(name: str) -> Any:
    """Import on first use: the launcher's process needs none of it, and transformers takes seconds to load."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
