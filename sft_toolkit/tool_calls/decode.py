"""Tool-call arguments as models and tools write them: decoded once, every digit kept."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sft_toolkit.json_text import DuplicateKey, decode_strictly, encode

MAX_DEPTH = 128
"""Levels of nesting beyond which arguments are taken for a run-away generation, not for a call."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """`value` is the decoded object, or what was given where `problem` says why it is not one."""

    value: Any
    problem: str | None = None
    double_encoded: bool = False


def decode_arguments(given: Any) -> Arguments:
    """Decode arguments given as an object or as JSON text.

    Missing, null and blank mean `{}`. Text that decodes to text holding a JSON object is peeled exactly once more.
    What cannot be decoded is kept as it was given, with the problem beside it: it stays in the context.
    """
    if given is None:
        return Arguments({})
    decoded = _from_text(given) if isinstance(given, str) else _from_value(given)
    if decoded.problem is None and is_deeper(decoded.value, MAX_DEPTH):
        return Arguments(given, f"arguments is nested more than {MAX_DEPTH} levels deep")
    return decoded


def _from_value(given: Any) -> Arguments:
    if isinstance(given, dict):
        return Arguments(given)
    return Arguments(given, f"arguments is not an object but {_kind(given)}")


def _from_text(given: str) -> Arguments:
    if not given.strip():
        return Arguments({})
    try:
        value = decode_strictly(given)
        inner = _object_inside(value)
        if "\\u" in given:
            encode(value if inner is None else inner)
    except DuplicateKey as fault:
        return Arguments(given, str(fault))
    except UnicodeEncodeError:
        return Arguments(given, "arguments is not JSON: it holds half of a surrogate pair")
    except (ValueError, RecursionError) as fault:
        return Arguments(given, f"arguments is not JSON: {_why(fault)}")
    if inner is not None:
        return Arguments(inner, double_encoded=True)
    if value is None:
        return Arguments({})
    if isinstance(value, dict):
        return Arguments(value)
    return Arguments(given, f"arguments is not an object but {_kind(value)}")


def _object_inside(value: Any) -> dict[str, Any] | None:
    if not (isinstance(value, str) and value.lstrip().startswith("{")):
        return None
    try:
        inner = decode_strictly(value)
    except DuplicateKey:
        raise
    except (ValueError, RecursionError):
        return None
    return inner if isinstance(inner, dict) else None


def is_deeper(value: Any, levels: int) -> bool:
    """Whether dicts and lists nest more than so many levels deep in a value."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(levels):
        level = [child for node in level for child in _children(node) if isinstance(child, (dict, list))]
        if not level:
            return False
    return True


def _children(node: dict[str, Any] | list[Any]) -> Any:
    return node.values() if isinstance(node, dict) else node


def _why(fault: ValueError | RecursionError) -> str:
    if isinstance(fault, RecursionError):
        return "nested too deeply"
    if isinstance(fault, json.JSONDecodeError):
        return f"{fault.msg} at character {fault.pos}"
    return str(fault)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "text"
    if isinstance(value, list):
        return "a list"
    return "a number"
