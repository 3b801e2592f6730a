"""Damaged copies of good inputs, by a seed: of bytes, of texts, and of JSON with its structure kept."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

Mutate = Callable[[random.Random, Sequence[bytes]], bytes]

_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)
_FRAGMENTS = (
    *("<think>", "</think>", "<tool_call>", "</tool_call>", "<function=f>", "<|channel|>", "[TOOL_CALLS]", "```", "\0"),
    *("{{", "}}", "{%", "%}", "{# ", "~", "|tojson", "[0]", ".x", " for m in messages ", "**", "9" * 40, "'" * 3),
    *("\u202e", "\x1b]52;c;eA==\x07", "\ud83d", "\U0001f426", "\r\n", "\ufeff", "²", "../", "/etc/passwd", "-1", "NaN"),
)
_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2**63,
        -(2**63),
        10**400,
        0.5,
        1e308,
        "",
        " ",
        "0",
        "²",
        "../x",
        "\x1b[2J",
        "x" * 5000,
    ),
    *([], {}, [None], [[]], {"": {}}, {"$ref": "#"}, {"type": []}, {"role": "assistant", "content": None}),
)


def mutated_bytes(draw: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Bytes changed, taken out, doubled, cut off, or numbers written over them, up to eight times."""
    data = bytearray(draw.choice(seeds))
    for _ in range(draw.choice((1, 1, 1, 2, 4, 8))):
        place = draw.randrange(len(data) + 1)
        span = draw.choice((1, 1, 4, 8, 64, 1000))
        match draw.randrange(7):
            case 0 | 1:
                data[place : place + 1] = bytes([draw.randrange(256)])
            case 2:
                size = draw.choice((1, 2, 4, 8))
                data[place : place + size] = (draw.choice(_NUMBERS) % 256**size).to_bytes(size, "little")
            case 3:
                del data[place : place + span]
            case 4:
                data[place:place] = data[place : place + span]
            case 5:
                other = draw.choice(seeds)
                start = draw.randrange(len(other) + 1)
                data[place : place + span] = other[start : start + span]
            case _:
                del data[place:]
    return bytes(data)


def mutated_text(draw: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Pieces of a text taken out, doubled, moved, or put between, half pairs of surrogates among them."""
    text = draw.choice(seeds).decode()
    for _ in range(draw.choice((1, 2, 3, 6))):
        text = _changed_text(draw, text, draw.choice(seeds).decode())
    return text.encode("utf-8", "surrogatepass")


def mutated_json(draw: random.Random, seeds: Sequence[bytes]) -> bytes:
    """JSON of another shape; one in ten is nested deeply, and one in ten is damaged as bytes."""
    value = json.loads(draw.choice(seeds))
    for _ in range(draw.choice((1, 1, 2, 3, 6))):
        value = _changed(draw, value, json.loads(draw.choice(seeds)))
    if draw.random() < 0.1:
        for _ in range(draw.choice((10, 100, 900))):
            value = draw.choice(([value], {"items": value}, {"content": value}))
    text = json.dumps(value).encode()
    return mutated_bytes(draw, [text]) if draw.random() < 0.1 else text


def _changed_text(draw: random.Random, text: str, other: str) -> str:
    place = draw.randrange(len(text) + 1)
    span = draw.choice((1, 3, 20, 200))
    match draw.randrange(6):
        case 0 | 1:
            return text[:place] + draw.choice(_FRAGMENTS) + text[place:]
        case 2:
            return text[:place] + text[place + span :]
        case 3:
            return text[:place] + text[place : place + span] * draw.choice((2, 50)) + text[place + span :]
        case 4:
            start = draw.randrange(len(other) + 1)
            return text[:place] + other[start : start + span] + text[place:]
        case _:
            return text[:place]


def _changed(draw: random.Random, value: Any, other: Any, depth: int = 0) -> Any:
    """One change somewhere inside. `other` is where foreign parts come from."""
    inside = draw.random() < 0.85
    if isinstance(value, dict) and value and inside:
        key = draw.choice(list(value))
        if draw.random() < 0.7:
            return {**value, key: _changed(draw, value[key], _part(draw, other), depth + 1)}
        rest = {name: part for name, part in value.items() if name != key}
        return draw.choice((rest, {**rest, draw.choice(("id", "role", "$ref", "x", "")): value[key]}))
    if isinstance(value, list) and value and inside:
        place = draw.randrange(len(value))
        if draw.random() < 0.7:
            return [*value[:place], _changed(draw, value[place], _part(draw, other), depth + 1), *value[place + 1 :]]
        return draw.choice((value[:place], [*value, value[place]], value[::-1], value * 3))
    if isinstance(value, str) and draw.random() < 0.6:
        return _changed_text(draw, value, other if isinstance(other, str) else "")
    return draw.choice((*_VALUES, other))


def _part(draw: random.Random, value: Any) -> Any:
    if isinstance(value, dict) and value:
        return value[draw.choice(list(value))]
    return draw.choice(value) if isinstance(value, list) and value else value
