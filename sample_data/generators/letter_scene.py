"""Who writes to whom, where and when, and what a letter consists of."""

from __future__ import annotations

import random
from typing import NamedTuple

from generators.common import CITIES, FIRST_NAMES, LAST_NAMES

MONTHS = {
    "de": (
        "Januar",
        "Februar",
        "März",
        "April",
        "Mai",
        "Juni",
        "Juli",
        "August",
        "September",
        "Oktober",
        "November",
        "Dezember",
    ),
    "en": (
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ),
}


class Letter(NamedTuple):
    """What is asked for, the facts to use, what to think of first, and the letter."""

    instruction: str
    facts: str
    plan: str
    text: str


class Scene:
    """Who writes to whom, where and when."""

    def __init__(self, draw: random.Random, language: str) -> None:
        self.draw, self.language = draw, language
        self.writer = f"{draw.choice(FIRST_NAMES)} {draw.choice(LAST_NAMES)}"
        self.other_first, self.other_last = draw.choice(FIRST_NAMES), draw.choice(LAST_NAMES)
        self.city = draw.choice(CITIES)
        self.day, self.month, self.year = draw.randint(1, 28), draw.randrange(12), draw.choice((2024, 2025, 2026))

    def date(self, months_later: int = 0) -> str:
        later = self.month + months_later
        name, year = MONTHS[self.language][later % 12], self.year + later // 12
        return f"{self.day}. {name} {year}" if self.language == "de" else f"{self.day} {name} {year}"

    def head(self, subject: str) -> str:
        return f"{self.city}, {self.date()}\n\n**{subject}**\n\n"

    def pick(self, *options: str) -> str:
        return self.draw.choice(options)
