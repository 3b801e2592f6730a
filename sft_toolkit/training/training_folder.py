"""The folder of a run: what it was begun with, and that one run at a time works in it.

run.json  metrics.jsonl  checkpoints/step-…/  model/
"""

from __future__ import annotations

import fcntl
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import xxhash

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.json_text import decode, encode, encode_text
from sft_toolkit.shards.atomic import explained, write_text
from sft_toolkit.training.options import Recipe
from sft_toolkit.training.sequences import PackedFolder

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

    from sft_toolkit.training.extension import Extension

PINS, MODEL = "run.json", "model"
_LOCK = ".lock"
_WORDS = {"packed": "on other sequences", "model": "with another model", "extends": "from another state"}
_HISTORY = frozenset({"_name_or_path", "transformers_version"})


class RunFolder:
    """`pins`: what a resumed run must have in common with the one that began."""

    def __init__(self, path: Path, pins: dict[str, Any]) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.model = path / MODEL
        self.pins: dict[str, Any] = decode(encode(pins))

    def lock(self) -> TextIO:
        """Keep other runs out while the file returned is open. Raises ToolkitError where one is in."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            file = (self.path / _LOCK).open("w")
        except OSError as fault:
            raise explained(fault, self.path) from fault
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as fault:
            raise ToolkitError(f"{self.path}: another process trains here", "wait for it, or end it") from fault
        return file

    def planned_ranks(self, ranks: int, *, resume: bool) -> int:
        """The number of ranks that the run began with, which its plan is made for; for a new run, `ranks`.

        Raises UsageError where the folder holds a run and `resume` is not set, or one with other pins.
        """
        path = self.path / PINS
        if not path.exists():
            return ranks
        if not resume:
            raise UsageError(f"{self.path}: holds a run", "use `resume=True` to continue, or another `output`")
        pinned = decode(path.read_bytes())
        if difference := _difference(pinned, self.pins):
            raise UsageError(f"{self.path}: was begun {difference}", "resume it as it was, or use another `output`")
        return int(pinned["ranks"])

    def pin(self, ranks: int, read: int) -> None:
        """From now on this folder holds a run that was begun on `ranks` ranks, `read` steps into the order."""
        write_text(self.path / PINS, encode_text({"ranks": ranks, "read": read, **self.pins}) + "\n")


def pins_of(
    recipe: Recipe, packed: PackedFolder, config: PreTrainedConfig, extension: Extension | None = None
) -> dict[str, Any]:
    architecture = {name: value for name, value in config.to_dict().items() if name not in _HISTORY}
    checksums = [shard["blake2b"] for shard in packed.folder.manifest["shards"]]
    return {
        "recipe": asdict(recipe),
        "packed": xxhash.xxh3_128_hexdigest(encode(checksums)),
        "model": xxhash.xxh3_128_hexdigest(repr(sorted(architecture.items())).encode()),
        **({"extends": extension.pins} if extension else {}),
    }


def _difference(pinned: dict[str, Any], wanted: dict[str, Any]) -> str | None:
    before_all = decode(encode(asdict(Recipe()))) | pinned["recipe"]  # what an older run.json does not name
    for name, value in wanted["recipe"].items():
        if (before := before_all[name]) != value:
            return f"with `{name}` {before}, not {value}"
    for name, words in _WORDS.items():
        if pinned.get(name) != wanted.get(name):
            return words
    return None
