"""A bakery's assistant with tools, mostly German: bookings, stock, orders and the oven, as they go right and wrong.

`SCENES` lists what can happen in an exchange; a conversation strings some of them together.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from generators.bakery_shop import ENGLISH, INGREDIENTS, TOOLS, Shift
from generators.common import FIRST_NAMES, distinct, enumeration, money, number

COUNT = 150


def _sale(shift: Shift) -> tuple[int, str, str]:
    """Cents of a sale, and how it adds up in German and English."""
    goods = [
        ("Roggenbrot", "rye loaf", 480),
        ("Brezel", "pretzel", 90),
        ("Mohnschnecke", "poppy roll", 240),
        ("Apfelkuchen", "apple cake", 1450),
        ("Laugenstange", "pretzel stick", 130),
        ("Bauernbrot", "farmhouse loaf", 560),
    ]
    parts = [(shift.draw.randint(1, 6), *item) for item in shift.draw.sample(goods, shift.draw.randint(1, 4))]
    total = sum(count * price for count, _, _, price in parts)
    german = " + ".join(
        f"{count}-mal {name} zu {money(price, 'de')} = {money(count * price, 'de')}" for count, name, _, price in parts
    )
    english = " + ".join(
        f"{count} x {name} at {money(price, 'en')} = {money(count * price, 'en')}" for count, _, name, price in parts
    )
    if len(parts) > 1:
        german, english = f"{german}; Summe {money(total, 'de')}", f"{english}; sum {money(total, 'en')}"
    return total, german, english


def sale(shift: Shift) -> None:
    total, german, english = _sale(shift)
    shift.ask(f"Verkauft: {german}. Bitte buchen.", f"Sold: {english}. Please book it.")
    thought = (
        f"Ich prüfe die Summe: {german}. Das stimmt. buche_einnahme will eine Zahl: `{total / 100}`.",
        f"I check the sum: {english}. That is right. buche_einnahme wants a number: `{total / 100}`.",
    )
    shift.call(thought, ("buche_einnahme", {"betrag": total / 100}, shift.book(total)))
    shift.say(f"{shift.money(total)} sind gebucht.", f"{shift.money(total)} is booked.")


def sale_as_text(shift: Shift) -> None:
    """A string where a number is declared: refused, then put right."""
    total, german, english = _sale(shift)
    shift.ask(f"Buche bitte {shift.money(total)}.", f"Please book {shift.money(total)}.")
    shift.call(
        (f"Der Betrag ist {shift.money(total)}.", f"The amount is {shift.money(total)}."),
        ("buche_einnahme", {"betrag": f"{total / 100:.2f}"}, "Error: betrag muss eine Zahl sein"),
    )
    thought = (
        (
            f"Ich habe den Betrag als Text übergeben. Verlangt ist eine Zahl, also `{total / 100}` ohne"
            f" Anführungszeichen. Zum Vergleich: {german}."
        ),
        (
            f"I passed the amount as text. A number is wanted, so `{total / 100}` without quotes. For comparison:"
            f" {english}."
        ),
    )
    shift.call(thought, ("buche_einnahme", {"betrag": total / 100}, shift.book(total)))
    shift.say(f"Gebucht: {shift.money(total)}.", f"Booked: {shift.money(total)}.")


def stock_in_parallel(shift: Shift) -> None:
    wanted = shift.draw.sample(INGREDIENTS, shift.draw.randint(2, 5))
    asked = enumeration([shift.ingredient(name) for name in wanted], shift.language)
    shift.ask(f"Wie viel haben wir noch von {asked}?", f"How much {asked} is left?")
    calls = [
        ("lies_bestand", {"zutat": name}, json.dumps({"zutat": name, "kg": shift.stock[name]}, ensure_ascii=False))
        for name in wanted
    ]
    shift.call(
        (
            f"{len(wanted)} Zutaten, die Abfragen hängen nicht voneinander ab; ich stelle sie zugleich.",
            f"{len(wanted)} ingredients, and no query depends on another, so I send them together.",
        ),
        *calls,
    )
    low = [name for name in wanted if shift.stock[name] < 10]
    listed = ", ".join(f"{shift.ingredient(name)} {shift.stock[name]} kg" for name in wanted)
    sorted_stock = sorted(wanted, key=lambda name: shift.stock[name])
    thought = (
        (
            f"Bestand: {listed}. Am wenigsten ist von {sorted_stock[0]} da, dann {sorted_stock[1]}. Unter 10 kg:"
            f" {enumeration(low, 'de') or 'nichts'}."
        ),
        (
            f"Stock: {listed}. There is least of {ENGLISH[sorted_stock[0]]}, then {ENGLISH[sorted_stock[1]]}. "
            f"Below 10 kg: {enumeration([ENGLISH[name] for name in low], 'en') or 'nothing'}."
        ),
    )
    warning_de = f" Knapp: {enumeration(low, 'de')}." if low else ""
    warning_en = f" Running low: {enumeration([ENGLISH[name] for name in low], 'en')}." if low else ""
    shift.say(f"{listed}.{warning_de}", f"{listed}.{warning_en}", thought)


def order(shift: Shift) -> None:
    name, aim = shift.draw.choice(INGREDIENTS), shift.draw.randint(61, 120)
    have = shift.stock[name]
    shown = shift.ingredient(name)
    shift.ask(f"Fülle {shown} auf {aim} kg auf.", f"Fill up {shown} to {aim} kg.")
    shift.call(
        (f"Zuerst der Bestand von {name}.", f"First the stock of {ENGLISH[name]}."),
        ("lies_bestand", {"zutat": name}, json.dumps({"zutat": name, "kg": have}, ensure_ascii=False)),
    )
    thought = (
        (
            f"Da sind {have} kg, es sollen {aim} werden: {aim} - {have} = {aim - have} kg. Das liegt zwischen 1 und"
            " 200, geht also in einer Bestellung."
        ),
        (
            f"There are {have} kg and there should be {aim}: {aim} - {have} = {aim - have} kg. That is between 1 and"
            " 200, so one order will do."
        ),
    )
    shift.call(
        thought,
        (
            "bestelle",
            {"zutat": name, "kilogramm": aim - have},
            json.dumps({"bestellt": aim - have, "zutat": name}, ensure_ascii=False),
        ),
    )
    shift.stock[name] = aim
    shift.say(
        f"{aim - have} kg {shown} sind bestellt, dann sind es {aim} kg.",
        f"{aim - have} kg of {shown} is ordered, which makes {aim} kg.",
    )


def order_too_much(shift: Shift) -> None:
    """Above the declared maximum: invalid by the schema; then split in two calls of one turn."""
    name, amount = shift.draw.choice(INGREDIENTS), shift.draw.randint(210, 390)
    shown = shift.ingredient(name)
    shift.ask(f"Bestelle {amount} kg {shown}, es eilt.", f"Order {amount} kg of {shown}, it is urgent.")
    shift.call(
        (f"Eine Bestellung über {amount} kg.", f"One order of {amount} kg."),
        ("bestelle", {"zutat": name, "kilogramm": amount, "eilig": True}, "Error: kilogramm darf höchstens 200 sein"),
    )
    thought = (
        f"Mehr als 200 kg gehen nicht auf einmal. {amount} = 200 + {amount - 200}, also zwei Bestellungen.",
        f"More than 200 kg cannot go at once. {amount} = 200 + {amount - 200}, so two orders.",
    )
    shift.call(
        thought,
        *(
            (
                "bestelle",
                {"zutat": name, "kilogramm": part, "eilig": True},
                json.dumps({"bestellt": part, "zutat": name}, ensure_ascii=False),
            )
            for part in (200, amount - 200)
        ),
    )
    shift.say(
        f"Bestellt in zwei Teilen: 200 kg und {amount - 200} kg.",
        f"Ordered in two parts: 200 kg and {amount - 200} kg.",
    )


def unknown_tool(shift: Shift) -> None:
    shift.ask("Wie viel haben wir heute eingenommen?", "How much have we taken today?")
    shift.call(("Ich frage die Kasse.", "I ask the till."), ("lies_kasse", {}, "Error: unknown tool: lies_kasse"))
    total = shift.takings
    shift.call(
        ("Das Werkzeug heißt kassenstand, nicht lies_kasse.", "The tool is called kassenstand, not lies_kasse."),
        ("kassenstand", "" if shift.draw.random() < 0.5 else {}, json.dumps({"summe": total / 100})),
    )
    shift.say(f"Bisher {shift.money(total)}.", f"So far {shift.money(total)}.")


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


def till_busy(shift: Shift) -> None:
    """A repeat that succeeds is no fault."""
    total, german, english = _sale(shift)
    shift.ask(f"Bitte buchen: {german}.", f"Please book: {english}.")
    arguments = {"betrag": total / 100}
    shift.call(
        (f"Es sind {shift.money(total)}.", f"That is {shift.money(total)}."),
        ("buche_einnahme", arguments, "Error: Kasse belegt, bitte gleich noch einmal"),
    )
    shift.call(
        (
            "Die Kasse bittet um einen zweiten Versuch mit denselben Angaben.",
            "The till asks for a second try with the same data.",
        ),
        ("buche_einnahme", arguments, shift.book(total)),
    )
    shift.say(f"Im zweiten Versuch gebucht: {shift.money(total)}.", f"Booked at the second try: {shift.money(total)}.")


def wrong_name(shift: Shift) -> None:
    """A valid call that fails, and a correction that is new."""
    shift.ask("Wie viel Mehl ist noch da?", "How much flour is left?")
    shift.call(
        ("Bestand von Mehl.", "The stock of flour."),
        ("lies_bestand", {"zutat": "Mehl"}, "Error: unbekannte Zutat: Mehl"),
    )
    names = ("Weizenmehl", "Roggenmehl")
    calls = [
        ("lies_bestand", {"zutat": name}, json.dumps({"zutat": name, "kg": shift.stock[name]}, ensure_ascii=False))
        for name in names
    ]
    shift.call(
        (
            "Mehl gibt es in zwei Sorten: Weizenmehl und Roggenmehl. Ich frage beide.",
            "There are two kinds: wheat and rye. I ask for both.",
        ),
        *calls,
    )
    both = [shift.stock[name] for name in names]
    thought = (f"{both[0]} + {both[1]} = {sum(both)}.", f"{both[0]} + {both[1]} = {sum(both)}.")
    shift.say(
        f"{both[0]} kg Weizenmehl und {both[1]} kg Roggenmehl, zusammen {sum(both)} kg.",
        f"{both[0]} kg of wheat flour and {both[1]} kg of rye flour, {sum(both)} kg together.",
        thought,
    )


def extra_argument(shift: Shift) -> None:
    """An argument that is not declared, which the tool takes without complaint."""
    name, amount = shift.draw.choice(INGREDIENTS), shift.draw.randint(5, 40)
    shown = shift.ingredient(name)
    person = shift.draw.choice(FIRST_NAMES)
    shift.ask(
        f"Bestelle {amount} kg {shown} und vermerke, dass {person} sie annimmt.",
        f"Order {amount} kg of {shown} and note that {person} takes delivery.",
    )
    arguments = {"zutat": name, "kilogramm": amount, "vermerk": f"Annahme: {person}"}
    shift.call(
        (f"{amount} kg {name}, dazu der Vermerk.", f"{amount} kg of {ENGLISH[name]}, and the note."),
        ("bestelle", arguments, json.dumps({"bestellt": amount, "zutat": name}, ensure_ascii=False)),
    )
    shift.say(
        f"{amount} kg {shown} sind bestellt, {person} nimmt an.",
        f"{amount} kg of {shown} is ordered; {person} takes delivery.",
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
