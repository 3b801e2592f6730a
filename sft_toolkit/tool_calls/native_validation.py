"""What is asked of native validation, one schema and one value at a time, and how much work a value is."""

from __future__ import annotations

from typing import Any

import jsonschema_rs

MOST_STEPS = 100_000
"""What the judging of one value may take."""

LETTERS_A_STEP = 100


class TooMuchWork(Exception):
    """The value cannot be judged within the bound, or the schema says what is not walked here."""


def weight(value: Any, most: int = MOST_STEPS) -> int:
    """How much work it is to look through a value once: its values, and a step for each hundred letters of text.

    Counting stops beyond `most`.
    """
    total, waiting = 0, [value]
    while waiting and total <= most:
        current = waiting.pop()
        total += 1 + (length(current) // LETTERS_A_STEP if isinstance(current, str) else 0)
        if isinstance(current, dict):
            total += sum(map(len, current)) // LETTERS_A_STEP
            waiting += current.values()
        elif isinstance(current, list):
            waiting += current
    return total


def length(value: Any) -> int:
    return len(value) if isinstance(value, (str, dict, list)) else 0


def is_valid(validator: Any, value: Any) -> bool:
    if validator.is_valid(value):
        return True
    if ran_away(next(validator.iter_errors(value))):
        raise TooMuchWork("a pattern that runs away")
    return False


def ran_away(error: Any) -> bool:
    """Whether an error of the native validator only says that a pattern took too long."""
    return isinstance(error.kind, jsonschema_rs.ValidationErrorKind.BacktrackLimitExceeded)


def sentence(error: Any) -> str:
    """What an error of the native validator says to a person."""
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Required):
        return f"{error.kind.property} is required"
    return str(error.message)


def compiled(schema: dict[str, Any]) -> Any:
    try:
        return jsonschema_rs.validator_for(schema, offline=True, validate_formats=False)
    except (ValueError, jsonschema_rs.ValidationError) as fault:
        raise TooMuchWork(str(fault)) from fault
