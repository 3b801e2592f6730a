"""A run that begins with what another one had learned: with more steps, other data, or another recipe.

It is a run of its own: it has its folder, counts its steps from 1, and its learning rate rises and falls over them.
Where it reads the same sequences in the same order, that order continues where the other run stopped, so that what was
not read yet comes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xxhash

from sft_toolkit.errors import UsageError
from sft_toolkit.json_text import decode
from sft_toolkit.training.checkpoint_files import CHECKSUMS

_ORDER = ("order", "buffer", "seed", "microbatches", "drop_last")
"""What decides an order, beside the sequences and the ranks that a run began with."""


@dataclass(frozen=True, slots=True)
class Extension:
    """folder, step: the checkpoint; pinned: run.json of its run; weights_only: AdamW begins anew"""

    folder: Path
    step: int
    pinned: dict[str, Any]
    weights_only: bool

    @classmethod
    def of(cls, path: Path, run_file: str, *, weights_only: bool) -> Extension:
        """`path`: a run's folder, for its newest checkpoint, or one checkpoint. Raises UsageError for another."""
        name = path.name.removeprefix("step-")
        chosen = path.name.startswith("step-") and name.isdecimal()
        run = path.parent.parent if chosen else path
        steps = sorted(
            int(one.parent.name.removeprefix("step-")) for one in run.glob(f"checkpoints/step-*/{CHECKSUMS}")
        )
        if not (run / run_file).is_file() or not steps or (chosen and int(name) not in steps):
            raise UsageError(f"{path}: neither a run with a checkpoint nor one of its checkpoints")
        step = int(name) if chosen else steps[-1]
        return cls(run / "checkpoints", step, decode((run / run_file).read_bytes()), weights_only)

    @property
    def pins(self) -> dict[str, Any]:
        """What a resumed extension must have begun with."""
        checksums = (self.folder / f"step-{self.step:08d}" / CHECKSUMS).read_bytes()
        return {
            "checkpoint": xxhash.xxh3_128_hexdigest(checksums),
            "step": self.step,
            "weights_only": self.weights_only,
        }

    def steps_read(self, wanted: dict[str, Any], ranks: int) -> int:
        """Steps of the order of a run with the pins `wanted` that were read before; 0 for another order.

        Raises UsageError where the model is another one.
        """
        if self.pinned["model"] != wanted["model"]:
            raise UsageError(f"{self.folder.parent}: its model has another configuration", "give the same `model`")
        same = self.pinned["packed"] == wanted["packed"] and self.pinned["ranks"] == ranks
        recipes = self.pinned["recipe"], wanted["recipe"]
        if not same or any(recipes[0].get(name) != recipes[1].get(name) for name in _ORDER):
            return 0
        return int(self.pinned.get("read", 0)) + self.step
