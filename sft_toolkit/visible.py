"""Text of unknown origin as it may be shown: nothing in it moves a cursor, hides, or turns the reading direction."""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """Control and format characters as pictures (␛) or code points (⟨U+202E⟩).

    Line breaks, tabs and the joiners of emoji and of scripts that need them stay as they are.
    """
    return _HIDDEN.sub(_shown, text)


def one_line(text: str) -> str:
    """`visible`, with white space run together."""
    return visible(" ".join(text.split()))


def _shown(hidden: re.Match[str]) -> str:
    code = ord(hidden[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
