"""Bodies of replies, read as far as they can be: what was paid for is not thrown away for an odd character."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from sft_toolkit.json_text import decode

_BOM = b"\xef\xbb\xbf"


def decode_body(body: bytes) -> Any:
    """The JSON value of a body. Raises ValueError for what is no JSON however it is looked at.

    Beyond what JSON allows: a byte order mark, bytes that are no UTF-8, bare control characters, NaN (read as null),
    exponents that no decimal can hold (read as text), and halves of surrogate pairs, which become U+FFFD
    like the bytes.
    """
    try:
        return decode(body)
    except ValueError:
        return _joined(decode_with_halves(body))


def _joined(value: Any) -> Any:
    try:
        return whole_pairs(value)
    except RecursionError as fault:
        raise ValueError("nested too deeply") from fault


def decode_with_halves(body: bytes) -> Any:
    """As `decode_body`, with halves of surrogate pairs as they came: the other half may be in the next piece."""
    try:
        return decode(body)
    except ValueError:
        text = body.removeprefix(_BOM).decode("utf-8", "replace")
    try:
        return json.loads(text, strict=False, parse_float=_number, parse_constant=lambda name: None)
    except RecursionError as fault:
        raise ValueError("nested too deeply") from fault


def _number(digits: str) -> Decimal | str:
    """The number with every digit, or its text where a decimal cannot hold its exponent."""
    try:
        return Decimal(digits)
    except ArithmeticError:
        return digits


def whole_pairs(value: Any) -> Any:
    """`value` with the halves of surrogate pairs in its texts joined, and lone ones as U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {whole_pairs(name): whole_pairs(held) for name, held in value.items()}
    return [whole_pairs(held) for held in value] if isinstance(value, list) else value


def decode_or_none(body: bytes) -> Any:
    """`decode_body`, None for what is no JSON."""
    try:
        return decode_body(body)
    except ValueError:
        return None
