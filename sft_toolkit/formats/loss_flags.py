"""Loss flags as trainers and data sets write them: what must not be trained, whatever the flag is called."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from sft_toolkit.errors import RecordError
from sft_toolkit.formats.refusals import map_line, shown

TRAINED = ("weight", "loss", "train", "training", "trainable", "loss_mask", "loss_scale")
"""True or 1 is trained, false or 0 is not."""
MASKED = ("masked",)
"""The other way round."""
STRETCHES = ("train_detail",)
"""Loss by stretches of a message, which a weight of 0 or 1 cannot say."""
WITHOUT_EFFECT = "loss_flag_without_effect"


@dataclass(frozen=True)
class FlagNames:
    """The keys of a message that are flags: `trained` and, inverted, `masked`. None are read where `read` is False."""

    trained: tuple[str, ...] = TRAINED
    masked: tuple[str, ...] = MASKED
    read: bool = True

    @property
    def is_standard(self) -> bool:
        return self.trained == TRAINED and self.read

    @cached_property
    def all(self) -> frozenset[str]:
        """Every key that is a flag, read or not."""
        return frozenset({*self.trained, *self.masked, *STRETCHES})


def lowest_flag(given: dict[str, Any], names: FlagNames) -> int | None:
    """0 or 1, the lowest of the flags; None where there is none. Raises RecordError for what is neither."""
    if not names.read:
        return None
    for key in STRETCHES:
        if given.get(key):
            raise RecordError(
                "bad_weight",
                f"has {key}, loss by stretches of text",
                f"{map_line('weight')} trains the message as a whole",
            )
    trained = [_flag(key, given[key]) for key in names.trained if given.get(key) is not None]
    masked = [1 - _flag(key, given[key]) for key in names.masked if given.get(key) is not None]
    return min((*trained, *masked), default=None)


def _flag(key: str, value: Any) -> int:
    if isinstance(value, str):
        raise RecordError(
            "bad_weight",
            f"has {key} {shown(value)}, which is text",
            f"write 0 or 1, or leave flags unread: {map_line('weight')}",
        )
    if isinstance(value, bool | int | float | Decimal) and value in (0, 1):
        return int(value)
    raise RecordError(
        "bad_weight", f"has {key} {shown(value)}; a loss flag is 0 or 1", f"leave flags unread: {map_line('weight')}"
    )
