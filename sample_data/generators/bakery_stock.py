"""Scenes in the bakery's store: what is left, and what is ordered."""

from __future__ import annotations

import json

from generators.bakery_shop import ENGLISH, INGREDIENTS, Shift
from generators.common import FIRST_NAMES, enumeration


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
