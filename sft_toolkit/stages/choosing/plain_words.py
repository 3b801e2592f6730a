"""Text as the words and numbers that it says: what two copies of one text share whatever their dress."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import normalize

_MARKS = "".join(
    (
        r"\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670",
        r"\u0900-\u0dff\u0e31\u0e34-\u0e4e\u0f71-\u0f84\u1000-\u109f",
    )
)
"""Marks that belong to the letter before them, as ranges of a regular expression."""
_IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
TOKEN: Final = re.compile(
    rf"(?P<number>\d+(?:[.,'’]\d+)*)|[{_IDEOGRAPHS}]|[^\W\d_{_IDEOGRAPHS}](?:[^\W\d_{_IDEOGRAPHS}]|[{_MARKS}])*"
    r"|[+<=>^~|×÷±√€$£%°≤≥≠]|(?<=\d)[-−*/]|(?<=\d\s)[-−*/]|[-−*/](?=\s?\d)"
)
SEPARATORS: Final = re.compile(r"[.,'’]")


def tokens(text: str) -> list[str]:
    """The words, numbers and operators of a text: NFKC, small letters, no punctuation; `12,5` and `12.5` are one."""
    folded = normalize("NFKC", text).casefold()
    return [SEPARATORS.sub(".", token[0]) if token["number"] else token[0] for token in TOKEN.finditer(folded)]


def is_number(token: str) -> bool:
    return token[0].isdigit()
