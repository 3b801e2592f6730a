"""A folder of shards as a reader sees it: whole, with a manifest, or refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from sft_toolkit.errors import ToolkitError
from sft_toolkit.json_text import decode, encode
from sft_toolkit.shards.schemas import SCHEMA_VERSION
from sft_toolkit.shards.writer import require_checksum

MANIFEST = "manifest.json"
PROGRESS = ".progress"
_LONGEST_NAME = 255  # bytes, of every file system that is common
_Count = Annotated[int, msgspec.Meta(ge=0)]


def is_shard_folder(path: Path) -> bool:
    """True for a folder that the toolkit wrote or has begun to write."""
    return (path / MANIFEST).is_file() or (path / PROGRESS).is_dir()


class ShardFolder:
    """A finished folder of shards.

    Raises ToolkitError where there is no manifest (the run that wrote it is unfinished), where the manifest is not
    ours or of another schema version, where a shard is missing or cut, or where `kind` is given and differs.
    """

    def __init__(self, path: Path | str, kind: str | None = None) -> None:
        self.path = Path(path)
        self.manifest: dict[str, Any] = self._read_manifest()
        self.kind: str = self.manifest["schema"]
        if kind is not None and self.kind != kind:
            raise ToolkitError(f"{path}: holds {self.kind} shards, not {kind} shards", _HINTS[kind])

    @cached_property
    def paths(self) -> list[Path]:
        """The shard files, in order."""
        return [self._checked(shard) for shard in self.manifest["shards"]]

    @property
    def rows(self) -> int:
        return sum(shard["rows"] for shard in self.manifest["shards"])

    def verify(self, shards: Iterable[int]) -> None:
        """Raise ToolkitError where the bytes of one of these shards are not those that were written."""
        for number in shards:
            require_checksum(self.paths[number], self.manifest["shards"][number]["blake2b"])

    def checksums(self) -> Iterator[tuple[Path, str]]:
        """Each shard file and the checksum that was written of it."""
        for path, shard in zip(self.paths, self.manifest["shards"], strict=True):
            yield path, shard["blake2b"]

    def _read_manifest(self) -> dict[str, Any]:
        path = self.path / MANIFEST
        if not path.is_file():
            if (self.path / PROGRESS).is_dir():
                raise ToolkitError(f"{self.path}: unfinished", "run what writes it again with `resume=True`")
            raise ToolkitError(f"{self.path}: no shard folder (it has no {MANIFEST})")
        try:
            manifest = decode(path.read_bytes())
            version = manifest["schema_version"]
        except (ValueError, KeyError, TypeError) as fault:
            raise _no_manifest(path, fault) from fault
        if version != SCHEMA_VERSION:
            raise ToolkitError(
                f"{path}: schema version {version}, this tool reads {SCHEMA_VERSION}",
                "write the shards again with this version",
            )
        try:
            stated = msgspec.convert(manifest, _Stated)
        except msgspec.ValidationError as fault:
            raise _no_manifest(path, fault) from fault
        for shard in stated.shards:
            if not is_plain_name(shard.name):
                raise _no_manifest(path, f"{shard.name!r} is not the name of a file beside it")
        return manifest

    def _checked(self, shard: dict[str, Any]) -> Path:
        path = self.path / shard["name"]
        if not path.is_file() or path.stat().st_size != shard["bytes"]:
            raise ToolkitError(f"{path}: missing or cut, its manifest says {shard['bytes']} bytes", "copy it again")
        return path


class _StatedShard(msgspec.Struct):
    name: str
    rows: _Count
    tokens: _Count
    bytes: _Count
    blake2b: str


class _Stated(msgspec.Struct):
    """What readers depend on in a manifest."""

    schema: Literal["records", "tokens", "packed"]
    shards: list[_StatedShard]


def is_plain_name(name: Any) -> bool:
    """True for the name of a file in a folder: no part of a path, and nothing that leads out of it."""
    if not isinstance(name, str) or name in ("", ".", "..") or set(name) & {"/", "\\", "\0"}:
        return False
    return len(name.encode(errors="replace")) <= _LONGEST_NAME


def _no_manifest(path: Path, fault: Any) -> ToolkitError:
    return ToolkitError(f"{path}: not a manifest of this tool: {fault}", "write the folder again")


def rendering_of(folders: Sequence[ShardFolder]) -> dict[str, Any]:
    """Hashes of the tokenizer and template of token shards. Raises ToolkitError where the folders differ."""
    rendering: dict[str, Any] = {}
    for fact in _RENDERED_WITH:
        values = {encode(folder.manifest.get(fact)): folder.path for folder in folders}
        if len(values) > 1:
            names = ", ".join(str(path) for path in values.values())
            raise ToolkitError(f"{names}: rendered with different {fact.replace('_', ' ')}s", "render them alike")
        if folders and fact in folders[0].manifest:
            rendering[fact] = folders[0].manifest[fact]
    return rendering


_RENDERED_WITH = ("tokenizer", "chat_template")
_HINTS = {
    "records": "records come from convert and the other record stages",
    "tokens": "token shards come from kolibri-sft render",
    "packed": "packed shards come from kolibri-sft pack",
}
