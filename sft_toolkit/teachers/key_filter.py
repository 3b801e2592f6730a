"""The API key, blotted out of whatever a server echoes."""

from __future__ import annotations

import re

# What is shorter is no key but a word such as EMPTY or ollama, which answers may well hold.
SECRET_LENGTH = 16
_BLOT = b"***"


class KeyFilter:
    """Finds the key as it is, with any of its characters escaped as JSON writes them, and so escaped several times."""

    def __init__(self, key: str | None) -> None:
        self._key = (key or "").encode()
        self._escaped = re.compile(b"".join(map(_written, key or "")))

    def clean(self, content: bytes, shortest: int = 0) -> bytes:
        """`content` without a key of `shortest` characters or more."""
        if not self._key or len(self._key) < shortest:
            return content
        content = content.replace(self._key, _BLOT)
        return self._escaped.sub(_BLOT, content) if b"\\" in content else content


def _written(character: str) -> bytes:
    """The ways to write one character of a key: plain, after backslashes, as \\uXXXX in hexadecimal of any case."""
    code = f"{ord(character):04x}"
    digits = "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in code)
    return rb"(?:\\*%s|\\+u%s)" % (re.escape(character.encode()), digits.encode())
