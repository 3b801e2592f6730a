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

    def fence_end(self, opening: re.Match[str]) -> int:
        """Index behind the fence that `opening` (a match of CODE) begins; the end of the text if it never closes."""
        line = FENCE.match(self._text, opening.start())
        marks = line.group(1) if line else "```"
        closing = re.compile(rf"^[ \t>]*{re.escape(marks[0])}{{{len(marks)},}}[ \t]*\r?$", re.MULTILINE)
        found = closing.search(self._text, opening.end())
        return found.end() if found else len(self._text)

    def inline_end(self, opening: re.Match[str]) -> int:
        """Index behind the inline code that a run of ` opens; behind the run itself where nothing closes it."""
        starts = self._runs[opening.end() - opening.start()]
        place = bisect_right(starts, opening.start())
        if place == len(starts) or _BLANK_LINE.search(self._text, opening.end(), starts[place]):
            return opening.end()
        return starts[place] + opening.end() - opening.start()

    def end(self, match: re.Match[str]) -> int:
        return self.fence_end(match) if match.lastgroup == "fence" else self.inline_end(match)

    @cached_property
    def _runs(self) -> dict[int, list[int]]:
        runs: dict[int, list[int]] = defaultdict(list)
        for run in _TICKS.finditer(self._text):
            runs[run.end() - run.start()].append(run.start())
        return runs


class OutsideCode:
    """A pattern that is looked for outside of code. Its own groups are to be named, none of them `fence` or `ticks`."""

    def __init__(self, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self._either = re.compile(rf"{CODE}|(?P<mark>{pattern})", flags | re.MULTILINE)

    def search(self, text: str, at: int = 0, code: Code | None = None) -> re.Match[str] | None:
        """The first match at `at` or later that does not lie in code."""
        code = code or Code(text)
        while match := self._either.search(text, at):
            if match["mark"] is not None:
                return match
            at = max(code.end(match), match.start() + 1)
        return None
