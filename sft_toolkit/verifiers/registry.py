"""The verifiers by name."""

from __future__ import annotations

from collections.abc import Callable

from sft_toolkit.errors import UsageError
from sft_toolkit.verifiers.choice import ChoiceVerifier
from sft_toolkit.verifiers.command import CommandVerifier
from sft_toolkit.verifiers.formulas import MathVerifier
from sft_toolkit.verifiers.number import NumberVerifier
from sft_toolkit.verifiers.text import TextVerifier
from sft_toolkit.verifiers.values import CallsVerifier, JsonVerifier
from sft_toolkit.verifiers.verdicts import Verifier

COMMAND = "command:"
_VERIFIERS: dict[str, Callable[[float], Verifier]] = {
    "number": NumberVerifier,
    "text": lambda tolerance: TextVerifier(),
    "choice": lambda tolerance: ChoiceVerifier(),
    "json": lambda tolerance: JsonVerifier(),
    "calls": lambda tolerance: CallsVerifier(),
    "math": MathVerifier,
}
WHOLE_KEYS = ("json", "calls")
"""Verifiers to which a list is one reference, not a choice of several."""


def find_verifier(name: str, tolerance: float = 0.0, seconds: float = 10.0, megabytes: int = 2048) -> Verifier:
    """The verifier of that name, or of `command:CMD`. Raises UsageError for a name that is none."""
    if name.startswith(COMMAND):
        return CommandVerifier(name.removeprefix(COMMAND), seconds, megabytes)
    if name not in _VERIFIERS:
        raise UsageError(f"`verifier` {name}: unknown", f"choose one of {', '.join(_VERIFIERS)}, command:'CMD'")
    return _VERIFIERS[name](tolerance)
