"""The artefact of `effort fit`: the edges of all groups, in a small JSON file that people can read and compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

import sft_toolkit
from sft_toolkit.errors import ToolkitError
from sft_toolkit.json_text import encode_text
from sft_toolkit.labelers.effort import FALLBACK, MIN_GROUP, PERCENTILES, Edges, EdgeTable
from sft_toolkit.shards.atomic import write_text
from sft_toolkit.stages.effort.lengths import Identity

_KEYS = {**FALLBACK, "difficulty": ("difficulty",)}
"""Keys of each level of a row. Version 1 has edges of a difficulty over all data sets, which are no longer looked at,
and none around a median: of a small data set its own few lengths then count."""

Tokens = Annotated[float, msgspec.Meta(ge=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class _Row(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One group's edges. `dataset` and `difficulty` are there where the level has them; "" is a record without one."""

    level: Literal["group", "dataset", "median", "all", "difficulty"]
    dataset: str | None = None
    difficulty: str | None = None
    n: Annotated[int, msgspec.Meta(ge=1)]
    l30: Tokens
    l70: Tokens

    def __post_init__(self) -> None:
        if self.l30 > self.l70:
            raise ValueError("l30 is above l70")
        given = tuple(name for name in ("dataset", "difficulty") if getattr(self, name) is not None)
        if given != _KEYS[self.level]:
            raise ValueError(f"level {self.level} takes the keys: {', '.join(_KEYS[self.level]) or 'none'}")

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(getattr(self, name) for name in _KEYS[self.level])


class _File(msgspec.Struct, forbid_unknown_fields=True):
    schema: Literal["kolibri-sft effort edges"]
    schema_version: Literal[1, 2]
    tool_version: str
    lengths: Identity
    percentiles: tuple[int, int]
    exchanges_with_reasoning: Count
    exchanges_without_reasoning: Count
    edges: list[_Row]
    min_group: Annotated[int, msgspec.Meta(ge=1)] = MIN_GROUP

    def table(self) -> EdgeTable:
        """Raises ValueError where a group has two rows, or nothing holds for a data set that the fit did not see."""
        levels: dict[str, dict[tuple[str, ...], Edges]] = {level: {} for level in _KEYS}
        for row in self.edges:
            if row.key in levels[row.level]:
                raise ValueError(f"{row.level} {' / '.join(row.key)} occurs twice")
            levels[row.level][row.key] = Edges(row.n, row.l30, row.l70)
        if not levels["all"]:
            raise ValueError("no edges of level all")
        if self.schema_version == 1:
            levels["median"] = levels["dataset"]
        return EdgeTable({level: levels[level] for level in FALLBACK}, self.min_group)


@dataclass(frozen=True)
class FittedEdges:
    """Edges, where their lengths came from (`LengthSource.identity`), and how many exchanges were seen."""

    table: EdgeTable
    lengths: Identity
    reasoned: int
    without_reasoning: int

    @property
    def groups(self) -> dict[tuple[str, str], Edges]:
        """Each (data set, difficulty) that the fit saw, with the edges of its own lengths."""
        return {(dataset, difficulty): own for (dataset, difficulty), own in self.table.levels["group"].items()}

    def to_text(self) -> str:
        """JSON with one line per group: groups first, then the levels that small groups fall back to."""
        head = msgspec.structs.asdict(self._file)
        rows = head.pop("edges")
        lines = [f"  {encode_text(key)}: {encode_text(value)}," for key, value in head.items()]
        edges = ",\n".join(f"    {encode_text(row)}" for row in rows)
        return "\n".join(["{", *lines, '  "edges": [', edges, "  ]", "}", ""])

    @property
    def _file(self) -> _File:
        return _File(
            schema="kolibri-sft effort edges",
            schema_version=2,
            tool_version=sft_toolkit.__version__,
            lengths=self.lengths,
            percentiles=PERCENTILES,
            exchanges_with_reasoning=self.reasoned,
            exchanges_without_reasoning=self.without_reasoning,
            edges=list(self._rows()),
            min_group=self.table.min_group,
        )

    def _rows(self) -> Iterator[_Row]:
        for level, columns in FALLBACK.items():
            for key, edges in sorted(self.table.levels[level].items()):
                names: dict[str, Any] = dict(zip(columns, key, strict=True))
                yield _Row(level=level, **names, **edges._asdict())  # type: ignore[arg-type]

    def write(self, path: Path) -> None:
        """Write the artefact; it appears whole or not at all."""
        write_text(path, self.to_text())

    def require_same_lengths(self, identity: Identity) -> None:
        """Raise ToolkitError where the edges were counted with another tokenizer. A column's origin is not known."""
        fitted, given = self.lengths.get("tokenizer"), identity.get("tokenizer")
        if fitted and given and fitted != given:
            raise ToolkitError(
                f"the edges were fitted with tokenizer {fitted}, the lengths come from {given}",
                "use the same `tokenizer`, or fit again",
            )


def read_edges(path: Path) -> FittedEdges:
    """Read the artefact. Raises ToolkitError saying what is wrong where it is not one, or one of another method."""
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
    except OSError as fault:
        raise ToolkitError(f"{path}: {fault.strerror}", "kolibri-sft effort fit writes it") from fault
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise _malformed(path, str(fault)) from fault
    if file.percentiles != PERCENTILES:
        raise _malformed(path, f"percentiles {file.percentiles}, this tool labels by {PERCENTILES}")
    try:
        table = file.table()
    except ValueError as fault:
        raise _malformed(path, str(fault)) from fault
    return FittedEdges(table, file.lengths, file.exchanges_with_reasoning, file.exchanges_without_reasoning)


def _malformed(path: Path, detail: str) -> ToolkitError:
    return ToolkitError(
        f"{path}: not a file of edges: {detail}",
        "`edges` takes what `effort fit(output=FILE)` wrote; records are INPUT",
    )
