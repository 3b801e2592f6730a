"""Openers: the phrases that open a teacher's thinking in a language, by domain, and the draw among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path

import xxhash

from sft_toolkit.draws import key
from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.json_text import encode

GENERAL = "general"
_ALSO_CALLED = {
    "math": "maths",
    "mathematics": "maths",
    "coding": "code",
    "programming": "code",
    "tool": "tools",
    "agentic": "tools",
    "creative": "writing",
}


@dataclass(frozen=True)
class Openers:
    """Phrases per domain; `general` serves every domain that has none of its own."""

    phrases: Mapping[str, tuple[str, ...]]

    def draw(self, seed: int, record_id: str, sample: int, domain: str | None) -> str:
        """The opener of one sample: decided by seed, record id and sample alone, among those of the domain."""
        name = (domain or GENERAL).casefold()
        choices = self.phrases.get(_ALSO_CALLED.get(name, name)) or self.phrases[GENERAL]
        return choices[key(seed, "opener", record_id, sample) % len(choices)]

    @cached_property
    def digest(self) -> str:
        return xxhash.xxh3_64_hexdigest(encode(sorted(self.phrases.items())))


def packaged_openers(language: str) -> Openers:
    """The lists that come with the toolkit. Raises UsageError for a language that has none."""
    file = resources.files(__package__) / "openers" / f"{language}.txt"
    if not file.is_file():
        raise UsageError(f"no openers for {language} come with the toolkit", "write a list and name it with `openers`")
    return parse_openers(file.read_text(encoding="utf-8"), f"{language}.txt")


def read_openers(path: Path) -> Openers:
    """Openers from a text file. Raises ToolkitError where it cannot be read or has no phrases for `general`."""
    try:
        return parse_openers(path.read_text(encoding="utf-8"), str(path))
    except OSError as fault:
        raise ToolkitError(f"{path}: {fault.strerror}") from fault
    except UnicodeDecodeError as fault:
        raise ToolkitError(f"{path}: not UTF-8 text: {fault}") from fault


def parse_openers(text: str, origin: str) -> Openers:
    """One phrase a line; `[domain]` begins the phrases of a domain, those before it are `general`; # is a comment."""
    found: dict[str, list[str]] = {}
    domain = GENERAL
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            domain = line[1:-1].strip().casefold()
        elif line and not line.startswith("#"):
            found.setdefault(domain, []).append(line)
    if GENERAL not in found:
        raise ToolkitError(f"{origin}: no phrases for [general]", "they serve every domain without a section")
    return Openers({name: tuple(phrases) for name, phrases in found.items()})
