"""How a prompt states the effort of its record where the template has no words for it: sentences and variables.

A TOML file holds a table for each level, and where in the system prompt a sentence stands:

    position = "end"                                  # or "front"
    [none]
    sentence = "Reasoning effort: none."
    variables = { enable_thinking = false }           # given to the template
    [low]
    sentence = "Reasoning effort: low."
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from sft_toolkit.chat.system_prompt import in_system
from sft_toolkit.chat.template import Messages
from sft_toolkit.conversation import EFFORTS
from sft_toolkit.errors import ToolkitError

Position = Literal["front", "end"]


class _Level(msgspec.Struct, forbid_unknown_fields=True):
    sentence: str = ""
    variables: dict[str, Any] = msgspec.field(default_factory=dict)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    position: Position = "end"
    none: _Level = msgspec.field(default_factory=_Level)
    low: _Level = msgspec.field(default_factory=_Level)
    medium: _Level = msgspec.field(default_factory=_Level)
    high: _Level = msgspec.field(default_factory=_Level)


@dataclass(frozen=True)
class EffortSentences:
    """`sentences` and template `variables` by level; a level that is in neither is stated by nothing of these."""

    position: Position = "end"
    sentences: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def states(self, level: str) -> bool:
        return level in self.sentences or level in self.variables

    def of_level(self, level: str | None) -> Mapping[str, Any]:
        """The variables that the template is given at a level."""
        return self.variables.get(level or "", {})

    def in_prompt(self, level: str | None, before: Messages, messages: Messages, parts: bool) -> Messages:
        """Write the sentence of a level into the system prompt; returns what must stand before `messages`."""
        sentence = self.sentences.get(level or "")
        if sentence is None:
            return before
        front = self.position == "front"
        if not before:
            return in_system(messages, sentence, parts, front)
        in_system(before, sentence, parts, front)
        return before


def read_effort_sentences(path: Path) -> EffortSentences:
    """Raises ToolkitError where the file cannot be read, is no such TOML, or states no level."""
    try:
        file = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), _File)
    except OSError as fault:
        raise ToolkitError(f"{path}: {fault.strerror}", "it is a TOML file with a table for each level") from fault
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as fault:
        raise ToolkitError(f"{path}: no effort sentences: {fault}", _FORM) from fault
    levels: dict[str, _Level] = {level: getattr(file, level) for level in EFFORTS}
    found = EffortSentences(
        file.position,
        {name: level.sentence.strip() for name, level in levels.items() if level.sentence.strip()},
        {name: level.variables for name, level in levels.items() if level.variables},
    )
    if not (found.sentences or found.variables):
        raise ToolkitError(f"{path}: states no level", _FORM)
    return found


_FORM = 'as in [low] sentence = "Think briefly." variables = { reasoning_effort = "low" }'
