"""Rows of tables: a column of structs has every key of every row, null where a row lacks it."""

from __future__ import annotations

import math
from typing import Any


def without_padding(value: Any) -> Any:
    """A copy without keys whose value is null or no number (NaN), at every level; infinite numbers as text.

    What is no number itself is null.
    """
    if isinstance(value, dict):
        return {key: without_padding(item) for key, item in value.items() if not _is_padding(item)}
    if isinstance(value, list):
        return [without_padding(item) for item in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _is_padding(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)
