"""Stretches of Markdown code, in which no markup counts: fences and inline code, as CommonMark 0.31 has them.

A fence is a line of three or more ` or ~ (in a quotation or list too); it ends with a line of at least as many, or with
the text. Inline code lies between two runs of equally many `, in one paragraph.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from functools import cached_property

_BACKTICKS = re.compile(r"`+")
_RUN = re.compile(r"`+|~~~+")
_BEFORE_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?")
_LONGEST_INDENT = 100
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


class Code:
    """The code of one text; asked from left to right, its cost is linear."""

    def __init__(self, text: str) -> None:
        self._text = text

    def is_fence(self, run: re.Match[str]) -> bool:
        """Whether a run of ` or ~ opens a fence: three or more at a line's beginning, with no ` in the rest of it."""
        begin, end = run.span()
        if end - begin < 3:
            return False
        line = self._text.rfind("\n", max(0, begin - _LONGEST_INDENT), begin) + 1
        if not _BEFORE_FENCE.fullmatch(self._text, line, begin):
            return False
        line_end = self._text.find("\n", end)
        return run[0][0] == "~" or self._text.find("`", end, line_end if line_end >= 0 else len(self._text)) < 0

    def fence_end(self, run: re.Match[str]) -> int | None:
        """Index behind the fence that `run` opens; None where it never closes."""
        closing = re.compile(rf"^[ \t>]*{run[0][0]}{{{len(run[0])},}}[ \t]*\r?$", re.MULTILINE)
        found = closing.search(self._text, run.end())
        return found.end() if found else None

    def inline_end(self, run: re.Match[str]) -> int:
        """Index behind the inline code that a run of ` opens; behind the run itself where nothing closes it."""
        starts = self._runs[run.end() - run.start()]
        place = bisect_right(starts, run.start())
        if place == len(starts) or _BLANK_LINE.search(self._text, run.end(), starts[place]):
            return run.end()
        return starts[place] + run.end() - run.start()

    @cached_property
    def _runs(self) -> dict[int, list[int]]:
        runs: dict[int, list[int]] = defaultdict(list)
        for run in _BACKTICKS.finditer(self._text):
            runs[run.end() - run.start()].append(run.start())
        return runs


class OutsideCode:
    """A pattern that is looked for outside of code.

    A match that begins a line is not in the inline code that began on an earlier one: stray ` are more frequent. With
    `in_open_fences` it is not in a fence that never closes either.
    """

    def __init__(self, pattern: str, flags: re.RegexFlag = re.NOFLAG, in_open_fences: bool = False) -> None:
        self._pattern = re.compile(pattern, flags)
        self._begins_line = re.compile(rf"^[ \t]*(?:{pattern})", flags | re.MULTILINE)
        self._in_open_fences = in_open_fences

    def search(self, text: str, at: int = 0, code: Code | None = None) -> re.Match[str] | None:
        """The first match at `at` or later that does not lie in code."""
        code = code or Code(text)
        found = self._pattern.search(text, at)
        while found and (run := _RUN.search(text, at, found.start())):
            at = self._code_end(text, run, code)
            if at > found.start():
                found = self._pattern.search(text, at)
        return found

    def _code_end(self, text: str, run: re.Match[str], code: Code) -> int:
        """Index behind the code that a run of ` or ~ opens, or behind the run where it opens none."""
        if code.is_fence(run):
            end = code.fence_end(run)
            if end is not None:
                return end
            plain = self._begins_line.search(text, run.end()) if self._in_open_fences else None
            return plain.start() if plain else len(text)
        end = code.inline_end(run) if run[0][0] == "`" else run.end()
        hidden = "\n" in text[run.end() : end] and self._begins_line.search(text, run.end(), end)
        return run.end() if hidden else end
