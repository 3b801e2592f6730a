"""The words of a refusal: what the record holds, and the lines of the mapping that would let it in."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

_SHOWN_COLUMNS = 40
_SHOWN_LETTERS = 60


def map_line(key: str, path: str = "") -> str:
    """The parameter `map` with the value KEY=PATH, quoted as a shell wants it."""
    return f"`map={shlex.quote(f'{key}={path}')}`"


def listed(names: Iterable[str]) -> str:
    """Names in a row, shortened where there are too many for a line."""
    shown = [name if len(name) <= _SHOWN_LETTERS else f"{name[:_SHOWN_LETTERS]}…" for name in names]
    if len(shown) <= _SHOWN_COLUMNS:
        return ", ".join(shown) or "none"
    return f"{', '.join(shown[:_SHOWN_COLUMNS])} and {len(shown) - _SHOWN_COLUMNS} more"


def shown(value: Any) -> str:
    """A value as a message shows it: numbers as the record writes them, text in quotes, all of it short."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float | Decimal):
        return str(value)[:_SHOWN_LETTERS]
    if isinstance(value, str):
        value = " ".join(value.split())
        return f'"{value}"' if len(value) <= _SHOWN_LETTERS else f'"{value[:_SHOWN_LETTERS]}…"'
    return "a list" if isinstance(value, list) else "an object"
