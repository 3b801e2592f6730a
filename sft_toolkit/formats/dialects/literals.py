"""One value out of a text, as JSON or as a Python literal, with every digit kept.

Grammar of the literals: None, True, False; numbers; strings in ' or " or three of them, with Python's escapes, several
in a row joined; [list], (tuple), {set}, {"key": value}; a comma may stand before the closing bracket. Python itself
would read numbers as floats, which loses digits, and it reads whole texts only.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from functools import cache
from typing import Any

from sft_toolkit.json_text import DuplicateKey, encode, strict_decoder
from sft_toolkit.tool_calls.decode import MAX_DEPTH, is_deeper

PYTHON_WORDS: dict[str, Any] = {"None": None, "True": True, "False": False}
BOTH_WORDS: dict[str, Any] = {**PYTHON_WORDS, "null": None, "true": True, "false": False}

_SPACE = re.compile(r"\s*+")
_WORD = re.compile(r"[A-Za-z]\w*+")
_NUMBER = re.compile(r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?(?![\w.])")
_STRING = re.compile(
    r"(?P<raw>[rRuU]?)(?:"
    r"\"\"\"(?P<a>[^\"\\]*+(?:(?:\\.|\"(?!\"\"))[^\"\\]*+)*+)\"\"\""
    r"|'''(?P<b>[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+)'''"
    r"|\"(?P<c>[^\"\\\n]*+(?:\\.[^\"\\\n]*+)*+)\""
    r"|'(?P<d>[^'\\\n]*+(?:\\.[^'\\\n]*+)*+)')",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|N\{([^}]*)\}|([0-7]{1,3})|(.))", re.S)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\n": "", "\\": "\\"}
_ESCAPES |= {"'": "'", '"': '"'}
_TOO_DEEP = "nested too deeply"
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_QUOTED = {
    '"': r"\"(?:[^\"\\]*+(?:\\.[^\"\\]*+)*+\")?",
    "'": r"(?<!\w)'(?:[^'\\]*+(?:\\.[^'\\]*+)*+')?",
}


def read_value(text: str, at: int, words: dict[str, Any] = PYTHON_WORDS) -> tuple[Any, int]:
    """The JSON value or Python literal that begins at `at`, and the index behind it.

    Raises ValueError (NoValue, or DuplicateKey where an object names a key twice) for neither, and for what cannot be
    written as JSON: half of a surrogate pair, keys that are no text, more than MAX_DEPTH levels.
    """
    try:
        value, end = strict_decoder.raw_decode(text, at)
    except DuplicateKey:
        raise
    except (ValueError, ArithmeticError, RecursionError):
        value, end = _Reader(text, words).value(at, 0)
    if isinstance(value, (dict, list)) and is_deeper(value, MAX_DEPTH):
        raise NoValue(_TOO_DEEP, end)
    if "\\" in text[at:end]:
        encode(value)
    return value, end


class NoValue(ValueError):
    """Neither JSON nor a Python literal; `pos` is where reading stopped."""

    def __init__(self, what: str, pos: int) -> None:
        super().__init__(f"{what} at character {pos}")
        self.pos = pos


def is_too_deep(fault: ValueError) -> bool:
    """True where `read_value` raised `fault` because brackets nest more than MAX_DEPTH levels."""
    return isinstance(fault, NoValue) and fault.args[0].startswith(_TOO_DEEP)


class _Reader:
    """Recursive descent; `level` bounds the recursion."""

    def __init__(self, text: str, words: dict[str, Any]) -> None:
        self._text = text
        self._words = words

    def value(self, at: int, level: int) -> tuple[Any, int]:
        if level > MAX_DEPTH:
            raise NoValue(_TOO_DEEP, at)
        opening = self._text[at : at + 1]
        if opening in _CLOSING and opening:
            return self._bracket(at, level)
        if _STRING.match(self._text, at):
            return self._strings(at)
        if number := _NUMBER.match(self._text, at):
            return _number(number.group()), number.end()
        word = _WORD.match(self._text, at)
        if word and word.group() in self._words:
            return self._words[word.group()], word.end()
        raise NoValue("no value", at)

    def _strings(self, at: int) -> tuple[str, int]:
        parts = []
        end = at
        while match := _STRING.match(self._text, at):
            body = next(group for group in match.group("a", "b", "c", "d") if group is not None)
            parts.append(body if match["raw"] in ("r", "R") else _ESCAPE.sub(_unescaped, body))
            end = match.end()
            at = self._skip(end)
        return "".join(parts), end

    def _bracket(self, at: int, level: int) -> tuple[Any, int]:
        """A list, tuple, set or dict. Parentheses around one value without a comma are the value."""
        opening = self._text[at]
        members: list[Any] = []
        keyed: dict[str, Any] = {}
        commas = 0
        at = self._skip(at + 1)
        while self._text[at : at + 1] != _CLOSING[opening]:
            if (members or keyed) and commas < len(members) + len(keyed):
                raise NoValue("no comma", at)
            member, at = self.value(at, level + 1)
            at = self._skip(at)
            if opening == "{" and self._text[at : at + 1] == ":" and not members:
                at = self._member(keyed, member, at, level)
            elif keyed:
                raise NoValue("no colon", at)
            else:
                members.append(member)
            if self._text[at : at + 1] == ",":
                commas += 1
                at = self._skip(at + 1)
        if opening == "{" and not members:
            return keyed, at + 1
        return (members[0] if opening == "(" and members and not commas else members), at + 1

    def _member(self, keyed: dict[str, Any], key: Any, at: int, level: int) -> int:
        if not isinstance(key, str):
            raise NoValue("a key that is no text", at)
        if key in keyed:
            raise DuplicateKey(f"duplicate key {key}")
        keyed[key], at = self.value(self._skip(at + 1), level + 1)
        return self._skip(at)

    def _skip(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at


def _number(text: str) -> int | Decimal:
    digits = text.lstrip("+-")
    if not digits.isdigit():
        try:
            return Decimal(text)
        except ArithmeticError as fault:
            raise ValueError("a number has an exponent beyond what a decimal can hold") from fault
    if len(digits) > 1 and digits.startswith("0"):
        raise ValueError("a number begins with 0")
    return int(text)


def _unescaped(match: re.Match[str]) -> str:
    two, four, eight, name, octal, single = match.groups()
    if octal:
        return chr(int(octal, 8))
    if name is not None:
        return _named(name)
    if single is not None:
        return _ESCAPES.get(single, match.group())
    return chr(int(two or four or eight, 16))


def _named(name: str) -> str:
    try:
        return unicodedata.lookup(name)
    except KeyError as fault:
        raise ValueError(f"no character is called {name}") from fault


def value_end(text: str, at: int, stop: int) -> int:
    """Where a value that cannot be read ends: before the comma or closing bracket that is not its own, at most `stop`.

    Brackets are counted; those in quotes are not. A kind of quote that once fails to close is a mere sign from then on.
    """
    depth, quotes = 0, "\"'"
    while match := _structure(quotes).search(text, at, stop):
        mark = match.group()
        at = match.end()
        if mark in quotes:
            quotes = quotes.replace(mark, "")
        elif mark in "[({":
            depth += 1
        elif depth == 0 and mark in "])},":
            return match.start()
        elif mark in "])}":
            depth -= 1
    return stop


@cache
def _structure(quotes: str) -> re.Pattern[str]:
    """Brackets, commas and, per kind of quote, what it encloses or else the quote alone. ' amid a word is no quote."""
    return re.compile("|".join([*(_QUOTED[quote] for quote in quotes), r"[\[({\])},]"]), re.DOTALL)


def read_whole(text: str, words: dict[str, Any] = PYTHON_WORDS) -> Any:
    """The value that is all of `text`, space around it apart. Raises ValueError."""
    text = text.strip()
    value, end = read_value(text, 0, words)
    if end < len(text):
        raise ValueError(f"more than one value: character {end}")
    return value
