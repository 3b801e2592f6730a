"""Stretches of Markdown code, in which no markup counts: fences and inline code, as CommonMark 0.31 has them.

A fence is a line of three or more ` or ~ (in a quotation or list too); it ends with a line of at least as many, or with
the text. Inline code lies between two runs of equally many `, in one paragraph.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from functools import cached_property

_TICKS = re.compile(r"`+")
FENCE = re.compile(r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}(?=[^`\n]*$)|~{3,})[^\n]*", re.MULTILINE)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")

CODE = r"(?P<fence>" + FENCE.pattern.replace("(`", "(?:`", 1) + r")|(?P<ticks>`+)"


class Code:
    """The code of one text; asked from left to right, its cost is linear."""

    def __init__(self, text: str) -> None:
        self._text = text

    def fence_end(self, opening: re.Match[str]) -> int | None:
        """Index behind the fence that `opening` (a match of CODE) begins; None where it never closes."""
        line = FENCE.match(self._text, opening.start())
        marks = line.group(1) if line else "```"
        closing = re.compile(rf"^[ \t>]*{re.escape(marks[0])}{{{len(marks)},}}[ \t]*\r?$", re.MULTILINE)
        found = closing.search(self._text, opening.end())
        return found.end() if found else None

    def inline_end(self, opening: re.Match[str]) -> int:
        """Index behind the inline code that a run of ` opens; behind the run itself where nothing closes it."""
        starts = self._runs[opening.end() - opening.start()]
        place = bisect_right(starts, opening.start())
        if place == len(starts) or _BLANK_LINE.search(self._text, opening.end(), starts[place]):
            return opening.end()
        return starts[place] + opening.end() - opening.start()

    @cached_property
    def _runs(self) -> dict[int, list[int]]:
        runs: dict[int, list[int]] = defaultdict(list)
        for run in _TICKS.finditer(self._text):
            runs[run.end() - run.start()].append(run.start())
        return runs


class OutsideCode:
    """A pattern that is looked for outside of code. Its own groups are to be named, none of them `fence` or `ticks`.

    A match that begins a line is not in the inline code that began on an earlier one: stray ` are more frequent. With
    `in_open_fences` it is not in a fence that never closes either.
    """

    def __init__(self, pattern: str, flags: re.RegexFlag = re.NOFLAG, in_open_fences: bool = False) -> None:
        self._either = re.compile(rf"{CODE}|(?P<mark>{pattern})", flags | re.MULTILINE)
        self._begins_line = re.compile(rf"^[ \t]*(?:{pattern})", flags | re.MULTILINE)
        self._in_open_fences = in_open_fences

    def search(self, text: str, at: int = 0, code: Code | None = None) -> re.Match[str] | None:
        """The first match at `at` or later that does not lie in code."""
        code = code or Code(text)
        while match := self._either.search(text, at):
            if match["mark"] is not None:
                return match
            at = self._fence_end(text, match, code) if match["fence"] else self._inline_end(text, match, code)
        return None

    def _fence_end(self, text: str, fence: re.Match[str], code: Code) -> int:
        end = code.fence_end(fence)
        if end is not None:
            return max(end, fence.start() + 1)
        plain = self._begins_line.search(text, fence.end()) if self._in_open_fences else None
        return plain.start() if plain else len(text)

    def _inline_end(self, text: str, ticks: re.Match[str], code: Code) -> int:
        end = code.inline_end(ticks)
        if "\n" in text[ticks.end() : end] and self._begins_line.search(text, ticks.end(), end):
            return ticks.end()
        return end
