"""Letters, German and English: half as Alpaca instructions, half as ShareGPT turns; mostly without reasoning."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from generators.business_letters import cancellation, complaint, enquiry
from generators.common import LANGUAGES, distinct
from generators.letter_scene import Letter, Scene
from generators.personal_letters import apology, invitation

COUNT = 130


MAKERS: tuple[Callable[[Scene], Letter], ...] = (complaint, cancellation, invitation, apology, enquiry)


def records() -> Iterator[dict[str, Any]]:
    """Alpaca records have no id, ShareGPT records have one."""
    yield from distinct("letters", COUNT, _record)


def _record(place: int, draw: random.Random) -> dict[str, Any]:
    language = LANGUAGES[place // len(MAKERS) % 2]
    letter = MAKERS[place % len(MAKERS)](Scene(draw, language))
    answer = f"<think>\n{letter.plan}\n</think>\n\n{letter.text}" if draw.random() < 0.25 else letter.text
    labels = {"dataset": "letters", "domain": "writing", "difficulty": draw.choice(("easy", "easy", "medium"))}
    if place % 2 == 0:
        return {**labels, "instruction": letter.instruction, "input": letter.facts, "output": answer}
    turns = [
        {"from": "human", "value": f"{letter.instruction}\n\n{letter.facts}"},
        {"from": "gpt", "value": answer},
    ]
    return {"id": f"letters-{place:04d}", **labels, "conversations": turns}
