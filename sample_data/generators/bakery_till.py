"""Scenes at the bakery's till."""

from __future__ import annotations

import json

from generators.bakery_shop import Shift
from generators.common import money


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


def unknown_tool(shift: Shift) -> None:
    shift.ask("Wie viel haben wir heute eingenommen?", "How much have we taken today?")
    shift.call(("Ich frage die Kasse.", "I ask the till."), ("lies_kasse", {}, "Error: unknown tool: lies_kasse"))
    total = shift.takings
    shift.call(
        ("Das Werkzeug heißt kassenstand, nicht lies_kasse.", "The tool is called kassenstand, not lies_kasse."),
        ("kassenstand", "" if shift.draw.random() < 0.5 else {}, json.dumps({"summe": total / 100})),
    )
    shift.say(f"Bisher {shift.money(total)}.", f"So far {shift.money(total)}.")
