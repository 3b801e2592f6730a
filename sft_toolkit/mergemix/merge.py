"""Candidate mixtures as merges of specialists: theta_base + sum alpha_k (theta_k - theta_base), MergeMix's proxy."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from sft_toolkit import json_text
from sft_toolkit.choices import Dtype
from sft_toolkit.errors import ToolkitError
from sft_toolkit.mergemix.candidates import Candidate, read_candidates
from sft_toolkit.shards.whole_folder import require_free, whole_folder
from sft_toolkit.souping.soup import require_distinct, require_outside
from sft_toolkit.souping.weights import task_arithmetic
from sft_toolkit.souping.writing import (
    Advance,
    Blend,
    Inputs,
    OutputOptions,
    ignore,
    open_inputs,
    write_json,
    write_models,
)

MIXTURES = "mixtures.jsonl"
SOURCES = "sources.json"


@dataclass(frozen=True)
class Sources:
    """The base and the specialist of each cluster."""

    base: Path
    specialists: Mapping[str, Path]

    @property
    def clusters(self) -> list[str]:
        return sorted(self.specialists)

    @property
    def paths(self) -> list[Path]:
        """The base, then the specialists by the name of their cluster: the order in which they are added."""
        return [self.base, *(self.specialists[name] for name in self.clusters)]


def write_merges(
    sources: Sources,
    mixtures: Sequence[Candidate],
    target: Path,
    options: OutputOptions,
    deferred: bool = False,
    advance: Advance = ignore,
) -> None:
    """Write one model per mixture to `target`/<id> in a single pass, with mixtures.jsonl and sources.json beside them.

    Where `deferred`, no models: `MergeFolder.model` then makes each when needed. Raises ToolkitError as `soup` does.
    """
    require_free(target, SOURCES, force=options.force)
    require_distinct(sources.paths)
    require_outside(target, sources.paths)
    inputs = open_inputs(sources.paths, options.dtype)
    with whole_folder(target, SOURCES, force=options.force) as folder:
        lines = [json_text.encode_text(mixture.to_json()) for mixture in mixtures]
        (folder / MIXTURES).write_text("\n".join(lines) + "\n", encoding="utf-8")
        specialists = {name: str(sources.specialists[name].resolve()) for name in sources.clusters}
        content = {"base": str(sources.base.resolve()), "specialists": specialists, "dtype": options.dtype}
        write_json(folder / SOURCES, content)
        if not deferred:
            _write(inputs, sources, mixtures, folder, options, advance)


@dataclass(frozen=True)
class MergeFolder:
    """What `write_merges` wrote."""

    path: Path
    sources: Sources
    mixtures: list[Candidate]
    dtype: Dtype | None

    @contextmanager
    def model(self, mixture: Candidate, threads: int) -> Iterator[Path]:
        """The folder of a merged model; one that was deferred is made for the time of the context."""
        finished = self.path / mixture.id
        if finished.is_dir():
            yield finished
            return
        options = OutputOptions(dtype=self.dtype, threads=threads)
        inputs = open_inputs(self.sources.paths, options.dtype)
        with tempfile.TemporaryDirectory(prefix=f".{mixture.id}.", dir=self.path) as folder:
            _write(inputs, self.sources, [mixture], Path(folder), options, ignore)
            yield Path(folder) / mixture.id


def open_merges(path: Path) -> MergeFolder:
    """Raises ToolkitError where `path` is not what `write_merges` leaves."""
    try:
        content = json_text.decode((path / SOURCES).read_bytes())
        sources = Sources(Path(content["base"]), {name: Path(place) for name, place in content["specialists"].items()})
    except OSError as error:
        raise ToolkitError(f"{path}: no folder of merges: {error.strerror}", "write one with mergemix merge") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ToolkitError(f"{path / SOURCES}: not the sources of merges", "write them with mergemix merge") from error
    return MergeFolder(path, sources, read_candidates(path / MIXTURES, sources.clusters), content.get("dtype"))


def _write(
    inputs: Inputs,
    sources: Sources,
    mixtures: Sequence[Candidate],
    folder: Path,
    options: OutputOptions,
    advance: Advance,
) -> None:
    blends = []
    for mixture in mixtures:
        alphas = [mixture.weights[name] for name in sources.clusters]
        notes = {"method": "base + sum alpha (specialist - base)", "mixture": mixture.to_json()}
        blends.append(
            Blend(folder / mixture.id, task_arithmetic(alphas), (1 - sum(alphas, start=Fraction(0)), *alphas), notes)
        )
    write_models(inputs, blends, options, advance)
