"""Fenced blocks of code in a trace, also those that nobody closes.

Teachers forget to close a fence, and reasoning that is cut off ends in one. What follows is then judged by the
paragraph: sentences are the writer's, anything that looks like code is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r"`{3,}|~{3,}")
_OPENS_ANOTHER = re.compile(
    r"[ \t]*[A-Za-z][\w+#.-]*[ \t]*(?:\n|\Z)"
)  # ```python: no fence that closes says a language
_HOLDS_FENCES = re.compile(r"[ \t]*(?:markdown|mdx?|te?xt|plaintext|rst|adoc)\b", re.IGNORECASE)
_PARAGRAPH_BREAK = re.compile(r"\n(?:[ \t]*\n)+")
_LEAST_WORDS = 4
_DEEPEST = 40  # spaces before a fence
_WORD = re.compile(r"[^\W\d_]{2,}")
_SIGNS_OF_CODE = re.compile(
    r"""[{}\[\]=<>\\_|\#@$] | \w\( | // | \"{3} | '{3} | ;[ \t]*$
      | ^(?:import|from|def|class|return|print)\b | ^(?:for|while|if|elif|else|try|with)\b[^\n]*:$""",
    re.VERBOSE | re.MULTILINE,
)
_INDENTED = re.compile(r"^(?:[ ]{2,}|\t)", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?:…][\"')“”]?\Z")


def fenced_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Begin and end of each part of `text` that is code by a fence; prose in a block that is not closed is none."""
    marks = list(_FENCE.finditer(text))
    place = 0
    while place < len(marks):
        opening = marks[place]
        following = (later for later in range(place + 1, len(marks)) if marks[later][0].startswith(opening[0]))
        closing = next(following, None)
        if closing is None:
            yield from _code_in(text, opening.start(), len(text))
            return
        if _opens_another(text, marks[closing]) and not _HOLDS_FENCES.match(text, opening.end()):
            yield from _code_in(text, opening.start(), marks[closing].start())
            place = closing
        else:
            yield opening.start(), marks[closing].end()
            place = closing + 1


def _opens_another(text: str, mark: re.Match[str]) -> bool:
    before = "\n" + text[max(0, mark.start() - _DEEPEST) : mark.start()]
    begins_line = not before.rpartition("\n")[2].strip()
    return begins_line and _OPENS_ANOTHER.match(text, mark.end()) is not None


def _code_in(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """What is code of an unclosed block: its first paragraph, and each further one that does not read as prose."""
    first = True
    for start, stop in _paragraphs(text, begin, end):
        if first or not _is_prose(text[start:stop]):
            yield start, stop
        first = False


def _paragraphs(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    for gap in _PARAGRAPH_BREAK.finditer(text, begin, end):
        yield begin, gap.start()
        begin = gap.end()
    if begin < end:
        yield begin, end


def _is_prose(paragraph: str) -> bool:
    if _SIGNS_OF_CODE.search(paragraph) or _INDENTED.search(paragraph) or len(_WORD.findall(paragraph)) < _LEAST_WORDS:
        return False
    return _SENTENCE_END.search(paragraph.rstrip()) is not None
