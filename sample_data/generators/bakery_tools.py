"""A bakery's assistant with tools, mostly German: bookings, stock, orders and the oven, as they go right and wrong.

`SCENES` lists what can happen in an exchange; a conversation strings some of them together.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from generators.bakery_shop import TOOLS, Shift
from generators.bakery_stock import extra_argument, order, order_too_much, stock_in_parallel, wrong_name
from generators.bakery_till import sale, sale_as_text, till_busy, unknown_tool
from generators.common import distinct, number

COUNT = 150


def oven_stays_cold(shift: Shift) -> None:
    """The same call fails twice with the same words; then another oven."""
    oven, degrees = shift.draw.choice((1, 2)), shift.draw.randint(16, 26) * 10
    failure = f"Error: Ofen {oven} antwortet nicht"
    shift.ask(f"Heiz bitte Ofen {oven} auf {degrees} Grad vor.", f"Please preheat oven {oven} to {degrees} degrees.")
    shift.call(
        (f"Ofen {oven}, {degrees} Grad.", f"Oven {oven}, {degrees} degrees."),
        ("heize_ofen", {"ofen": oven, "grad": degrees}, failure),
    )
    shift.call(
        ("Vielleicht war es nur ein Aussetzer, noch einmal.", "Perhaps just a hiccup; once more."),
        ("heize_ofen", {"grad": degrees, "ofen": oven}, failure),
    )
    thought = (
        (
            f"Zweimal dieselbe Meldung, ein dritter Versuch bringt nichts. Ofen {3 - oven} ist noch da und kann"
            " dieselbe Temperatur."
        ),
        (
            f"The same message twice; a third try would not help. Oven {3 - oven} is there and reaches the same"
            " temperature."
        ),
    )
    shift.call(
        thought, ("heize_ofen", {"ofen": 3 - oven, "grad": degrees}, json.dumps({"ofen": 3 - oven, "grad": degrees}))
    )
    shift.say(
        f"Ofen {oven} meldet sich nicht. Ich habe dafür Ofen {3 - oven} auf {degrees} Grad gestellt.",
        f"Oven {oven} does not respond, so I set oven {3 - oven} to {degrees} degrees.",
    )


def question(shift: Shift) -> None:
    """Nothing to call."""
    loaves, flour = shift.draw.randint(12, 60), shift.draw.choice((450, 500, 550, 600))
    grams = loaves * flour
    kilograms = number(Fraction(grams, 1000), shift.language, 3)
    shift.ask(
        f"Wie viel Mehl brauche ich für {loaves} Brote, wenn in jedem {flour} g sind?",
        f"How much flour do I need for {loaves} loaves with {flour} g in each?",
    )
    thought = (
        f"Dafür brauche ich kein Werkzeug. {loaves} · {flour} g = {grams} g = {kilograms} kg.",
        f"No tool is needed. {loaves} x {flour} g = {grams} g = {kilograms} kg.",
    )
    shift.say(f"{kilograms} kg.", f"{kilograms} kg.", thought)


SCENES: tuple[Callable[[Shift], None], ...] = (
    sale_as_text,
    sale,
    stock_in_parallel,
    order,
    unknown_tool,
    oven_stays_cold,
    till_busy,
    wrong_name,
    order_too_much,
    extra_argument,
    question,
)


def records() -> Iterator[dict[str, Any]]:
    for index, record in enumerate(distinct("bakery_tools", COUNT, _record)):
        yield {"id": f"bakery_tools-{index:04d}", **record}


def _record(place: int, draw: random.Random) -> dict[str, Any]:
    shift = Shift(draw, "en" if place % 5 == 4 else "de")
    count = draw.choice((1, 1, 2, 2, 3, 4))
    first = SCENES[place % len(SCENES)]
    for scene in [first, *draw.sample([scene for scene in SCENES if scene is not first], count - 1)]:
        scene(shift)
    return {
        "dataset": "bakery_tools",
        "domain": "tools",
        "difficulty": "easy" if count == 1 else "medium",
        "messages": shift.messages,
        "tools": TOOLS,
    }
