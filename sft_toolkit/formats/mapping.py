"""The mapping: which columns of foreign records, or which keys of their messages, are read as what."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from sft_toolkit.errors import UsageError


class Takes(Enum):
    """What a key of the mapping may be given: one path, several, or a name that the data uses."""

    ONE = "a path"
    SEVERAL = "a path, repeatable"
    NAMES = "a name, repeatable"


KEYS = {
    **dict.fromkeys(("user", "assistant", "reasoning", "messages"), Takes.SEVERAL),
    **dict.fromkeys(("transcript", "system", "tools"), Takes.ONE),
    **dict.fromkeys(("role", "content"), Takes.NAMES),
    **dict.fromkeys(("as-user", "as-assistant", "as-system", "as-tool"), Takes.NAMES),
    **dict.fromkeys(("weight", "masked"), Takes.NAMES),
    **dict.fromkeys(("id", "dataset", "domain", "difficulty", "effort", "provenance"), Takes.ONE),
}
TEXTS = ("user", "assistant", "reasoning")
_SHAPING = (*TEXTS, "messages", "transcript")
_NEEDED = {"assistant": ("user", "messages"), "reasoning": ("assistant",)}
_EXCLUDED_BY_TRANSCRIPT = (*TEXTS, "messages")


@dataclass(frozen=True)
class ColumnMapping:
    """`entries`: each key with its paths in the order given; an empty path means that the key is read from nowhere."""

    entries: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @cached_property
    def _paths(self) -> dict[str, tuple[str, ...]]:
        return {key: tuple(path for path in paths if path) for key, paths in self.entries}

    def paths(self, key: str) -> tuple[str, ...]:
        return self._paths.get(key, ())

    def path(self, key: str) -> str | None:
        """The path of a key that takes one; None where it has none."""
        return next(iter(self.paths(key)), None)

    def unread(self, key: str) -> bool:
        """True where the user has said that the key is read from no column and no flag."""
        return self._paths.get(key) == ()

    @property
    def shapes(self) -> bool:
        """True where the mapping says what the conversation is, so that no shape is looked for."""
        return any(self.paths(key) for key in _SHAPING)

    def to_json(self) -> dict[str, list[str]]:
        """Each key with its paths, as pinned options and the manifest hold them."""
        return {key: list(paths) for key, paths in self.entries}


def parse_mapping(lines: Iterable[str], table: Mapping[str, Any] | None = None) -> ColumnMapping:
    """A mapping from `KEY=PATH` lines and from the table of a file; the lines of a key replace those of the table.

    Raises UsageError for an unknown key, a missing `=`, and keys that do not go together.
    """
    given: dict[str, list[str]] = {}
    for line in lines:
        key, equals, path = line.partition("=")
        if not equals:
            raise UsageError(f"`map={line}`: there is no = in it", f"give KEY=PATH; {_known()}")
        given.setdefault(_known_key(key.strip(), f"`map={line}`"), []).append(path)
    held = {_known_key(key, f"map file: {key}"): _file_paths(key, value) for key, value in (table or {}).items()}
    entries = {**held, **given}
    for key, paths in entries.items():
        _check_count(key, paths)
    mapping = ColumnMapping(tuple((key, tuple(entries[key])) for key in KEYS if key in entries))
    _check_company(mapping)
    return mapping


def _known_key(key: str, where: str) -> str:
    if key in KEYS:
        return key
    near = difflib.get_close_matches(key, KEYS, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    raise UsageError(f"{where}: there is no key {key}", f"{meant}{_known()}")


def _known() -> str:
    return f"known keys: {', '.join(KEYS)}"


def _file_paths(key: str, value: Any) -> list[str]:
    paths = value if isinstance(value, list) else [value]
    if not all(isinstance(path, str) for path in paths):
        raise UsageError(f"map file: {key} is neither text nor a list of texts", f'write {key} = "COLUMN"')
    return paths


def _check_count(key: str, paths: list[str]) -> None:
    if "" in paths and len(paths) > 1:
        raise UsageError(f"`map={key}=`: {key} is given a path as well", "leave one of them out")
    if KEYS[key] is Takes.ONE and len(paths) > 1:
        raise UsageError(f"`map={key}={paths[1]}`: {key} is given twice", f"it is {paths[0]} already")


def _check_company(mapping: ColumnMapping) -> None:
    for key, needed in _NEEDED.items():
        if mapping.paths(key) and not any(mapping.paths(other) for other in needed):
            raise UsageError(
                f"`map={key}={mapping.paths(key)[0]}`: {key} without {' or '.join(needed)}",
                f"add `map={needed[0]}=COLUMN`",
            )
    if mapping.path("transcript") is not None:
        for key in _EXCLUDED_BY_TRANSCRIPT:
            if mapping.paths(key):
                raise UsageError(f"`map={key}={mapping.paths(key)[0]}`: a transcript is a whole conversation already")
