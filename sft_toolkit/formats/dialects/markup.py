"""What every dialect is made of: the call that was read, the text it is read from, and where its markup ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from sft_toolkit.conversation import ToolCall
from sft_toolkit.tool_calls.decode import decode_arguments
from sft_toolkit.tool_calls.subschemas import applicable

SPACE = re.compile(r"\s*+")


class Unreadable(Exception):
    """Markup of a call whose name or extent cannot be read; the text says why."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call as a dialect writes it. `arguments` is an object, or its raw text (trimmed) where that is none.

    `extra` holds what else a call written as an object says.
    """

    name: str
    arguments: dict[str, Any] | str
    id: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def to_tool_call(self) -> ToolCall:
        """The toolkit's own form, with what is wrong with arguments that are no object."""
        decoded = decode_arguments(self.arguments)
        return ToolCall(self.name, decoded.value, self.id, decoded.problem, dict(self.extra))


@dataclass(frozen=True, slots=True)
class Block:
    """Calls that one stretch of markup holds, and the index behind it, its closing mark included."""

    calls: list[Call]
    end: int


class Tools:
    """Declared tools by name, as far as dialects ask: the names, and the schema of an argument.

    Tools may be wrapped (`{"type": "function", "function": …}`) or flat; the first of two equal names counts.
    """

    def __init__(self, declared: Iterable[dict[str, Any]] = (), names: Iterable[str] = ()) -> None:
        self._functions: dict[str, dict[str, Any]] = {}
        for tool in declared:
            function = tool.get("function", tool) if isinstance(tool, dict) else None
            if isinstance(function, dict) and isinstance(function.get("name"), str):
                self._functions.setdefault(function["name"], function)
        self.names = frozenset(self._functions).union(names)

    def schemas(self, name: str, argument: str) -> list[dict[str, Any]]:
        """Every schema that the tool's parameters give for this argument, references and alternatives followed."""
        root = self._functions.get(name, {}).get("parameters")
        return [
            part
            for schema in applicable(root, root)
            if isinstance(properties := schema.get("properties"), dict)
            for part in applicable(properties.get(argument), root)
        ]


@dataclass(slots=True)
class Source:
    """A text that calls are read from. Searches forward are remembered, so that many of them cost one pass."""

    text: str
    tools: Tools = field(default_factory=Tools)
    _found: dict[Any, tuple[int, int]] = field(default_factory=dict)

    def find(self, needle: str, at: int) -> int:
        """Index of the next `needle` at `at` or later; the length of the text where there is none."""
        searched_from, found = self._found.get(needle, (0, -1))
        if searched_from <= at <= found:
            return found
        found = self.text.find(needle, at)
        found = len(self.text) if found < 0 else found
        self._found[needle] = (at, found)
        return found

    def search(self, pattern: re.Pattern[str], at: int) -> int:
        """As `find`, for a pattern."""
        searched_from, found = self._found.get(pattern, (0, -1))
        if searched_from <= at <= found:
            return found
        match = pattern.search(self.text, at)
        found = match.start() if match else len(self.text)
        self._found[pattern] = (at, found)
        return found

    def skip(self, at: int) -> int:
        """Index of what follows blank space."""
        match = SPACE.match(self.text, at)
        return match.end() if match else at

    def closed(self, mark: str, at: int) -> int:
        """Index behind `mark` where it is what comes next, blank space apart; else `at`."""
        behind = self.skip(at)
        return behind + len(mark) if self.text.startswith(mark, behind) else at


@dataclass(frozen=True, slots=True)
class CallDialect:
    """One way to mark calls, and which models and data sets write it.

    `openings` are patterns without groups that each begin with a plain sign; `read` gets the source and the place
    where one of them matched, and raises Unreadable. `only_whole`: amid other text the mark is a mere mention unless
    calls run from it to the end.
    """

    name: str
    writers: str
    openings: tuple[str, ...]
    read: Callable[[Source, int], Block]
    only_whole: bool = False
