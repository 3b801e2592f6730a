"""One thing that `check` found out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """An `error` would train wrongly or stop a run, a `warning` wants a look; `advice` says what to do about it."""

    level: Level
    subject: str
    said: str
    advice: str = ""
