"""What the data sets share: seeded draws, names, numbers as either language writes them, places for reasoning."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any, TypeVar

Made = TypeVar("Made")
Parts = tuple[str, list[str], list[str], str, str]
"""A maths problem: question, steps, checks, answer, short answer."""

LANGUAGES = ("de", "en")
FIRST_NAMES = (
    "Aylin",
    "Ben",
    "Clara",
    "David",
    "Elif",
    "Fritz",
    "Greta",
    "Hannes",
    "Ida",
    "Jonas",
    "Katharina",
    "Luca",
    "Mira",
    "Nils",
    "Olga",
    "Paul",
    "Rosa",
    "Samir",
    "Theresa",
    "Uwe",
    "Vera",
    "Wanda",
    "Yusuf",
    "Zoe",
)
CITIES = (
    "Aachen",
    "Bremen",
    "Dresden",
    "Erfurt",
    "Freiburg",
    "Gera",
    "Heidelberg",
    "Jena",
    "Kiel",
    "Lübeck",
    "Münster",
    "Nürnberg",
    "Oldenburg",
    "Passau",
    "Rostock",
    "Trier",
    "Ulm",
    "Würzburg",
)
REASONING_FORMS = ("reasoning", "reasoning_content", "thinking", "tags", "part")


def drawer(dataset: str, index: int) -> random.Random:
    """The draws of one record: those of other records do not move them."""
    return random.Random(f"{dataset}/{index}")


def distinct(dataset: str, count: int, make: Callable[[int, random.Random], Made]) -> Iterator[Made]:
    """`make(place, draw)` for each place; where it comes up with what was there before, it draws again."""
    seen: set[str] = set()
    attempt = 0
    while len(seen) < count:
        made = make(len(seen), drawer(dataset, attempt))
        attempt += 1
        if repr(made) not in seen:
            seen.add(repr(made))
            yield made


def number(value: int | Decimal | Fraction, language: str, places: int = 2) -> str:
    """A number as the language writes it: decimal comma or point, up to `places` decimals, thousands from 10,000 on."""
    scaled = Decimal(Fraction(value).numerator) / Decimal(Fraction(value).denominator)
    text = f"{scaled.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):,}"
    whole, _, decimals = text.partition(".")
    whole = whole if abs(scaled) >= 10_000 else whole.replace(",", "")
    decimals = decimals.rstrip("0")
    if language == "de":
        return whole.replace(",", ".") + ("," + decimals if decimals else "")
    return whole + ("." + decimals if decimals else "")


def signed(value: int | Fraction, language: str) -> str:
    """A summand with its sign and spaces, as in `x + 3` and `x - 3`."""
    return f"{'-' if value < 0 else '+'} {number(abs(value), language)}"


def money(cents: int, language: str) -> str:
    euros, rest = divmod(cents, 100)
    if language == "de":
        return f"{euros:,}".replace(",", ".") + f",{rest:02d} €"
    return f"€{euros:,}.{rest:02d}"


def clock(minutes: int, language: str) -> str:
    hours, rest = divmod(minutes % (24 * 60), 60)
    return f"{hours}:{rest:02d} Uhr" if language == "de" else f"{hours}:{rest:02d}"


def enumeration(items: list[str], language: str) -> str:
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {'und' if language == 'de' else 'and'} {items[-1]}"


def assistant(content: str, reasoning: str | None = None, form: str = "reasoning") -> dict[str, Any]:
    """An assistant message whose reasoning stands where data sets and servers put it: see REASONING_FORMS."""
    if not reasoning:
        return {"role": "assistant", "content": content}
    if form == "tags":
        return {"role": "assistant", "content": f"<think>\n{reasoning}\n</think>\n\n{content}"}
    if form == "part":
        parts = [{"type": "thinking", "thinking": reasoning}, {"type": "text", "text": content}]
        return {"role": "assistant", "content": parts}
    return {"role": "assistant", form: reasoning, "content": content}
