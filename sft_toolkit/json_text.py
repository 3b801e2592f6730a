"""JSON in and out without losing a digit: numbers with a fraction are `Decimal`, integers are `int`.

Integers of hundreds of digits may be Decimals too, which compare and encode alike.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import msgspec


def _iso(value: Any) -> str:
    """Times of nanoseconds, which pyarrow gives as pandas' own, in the form that a datetime is written in."""
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    raise NotImplementedError(f"{type(value).__name__} has no form in JSON")


_decoder = msgspec.json.Decoder(float_hook=Decimal)
_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=_iso)
_TOO_LARGE = "a number has an exponent beyond what a decimal can hold"


def decode(text: bytes | str) -> Any:
    """Decode one JSON value. Raises ValueError for what is not JSON, NaN, Infinity and endless nesting included."""
    try:
        return _decoder.decode(text)
    except msgspec.ValidationError:
        return _with_long_integers(text)
    except ArithmeticError as fault:
        raise ValueError(_TOO_LARGE) from fault
    except RecursionError as fault:
        raise ValueError("nested too deeply") from fault


def encode(value: Any) -> bytes:
    """Encode compactly as UTF-8; a Decimal keeps its digits (16.20 stays 16.20)."""
    return _encoder.encode(value)


def encode_text(value: Any) -> str:
    """`encode` as str."""
    return _encoder.encode(value).decode()


class DuplicateKey(ValueError):
    """An object names a key twice, so that parsers disagree about its value."""


def decode_strictly(text: str) -> Any:
    """Decode as `decode` does, but refuse duplicate keys, which JSON parsers drop silently.

    Raises DuplicateKey, or ValueError with the position for what is not JSON.
    """
    try:
        return strict_decoder.decode(text)
    except ArithmeticError as fault:
        raise ValueError(_TOO_LARGE) from fault


def _with_long_integers(text: bytes | str) -> Any:
    """What msgspec leaves, JSON with integers of thousands of digits. Raises ValueError as `decode` does."""
    try:
        return json.loads(text, parse_float=Decimal, parse_int=_integer, parse_constant=_refuse_constant)
    except ArithmeticError as fault:
        raise ValueError(_TOO_LARGE) from fault
    except RecursionError as fault:
        raise ValueError("nested too deeply") from fault


def _integer(digits: str) -> int | Decimal:
    """A Decimal where the interpreter may be set to refuse so long an int (PYTHONINTMAXSTRDIGITS, 640 at least)."""
    return int(digits) if len(digits) < 600 else Decimal(digits)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    decoded = dict(pairs)
    if len(decoded) == len(pairs):
        return decoded
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise DuplicateKey(f"duplicate key {key}")
        seen.add(key)
    raise AssertionError("unreachable: a shorter dict has a repeated key")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


strict_decoder = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=Decimal, parse_int=_integer, parse_constant=_refuse_constant
)
"""The decoder of `decode_strictly`; its `raw_decode` reads the value that begins somewhere in a text."""
