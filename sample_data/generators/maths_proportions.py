"""Problems of proportions, means and percentages."""

from __future__ import annotations

import random
from fractions import Fraction

from generators.common import Parts, enumeration, money, number, signed

_DISHES = {
    "de": (
        ("Pfannkuchen", (("Mehl", 250, "g"), ("Milch", 500, "ml"), ("Zucker", 30, "g"))),
        ("Linsensuppe", (("Linsen", 300, "g"), ("Karotten", 200, "g"), ("Brühe", 1200, "ml"))),
        ("Milchreis", (("Reis", 240, "g"), ("Milch", 1000, "ml"), ("Zucker", 60, "g"))),
    ),
    "en": (
        ("pancakes", (("flour", 250, "g"), ("milk", 500, "ml"), ("sugar", 30, "g"))),
        ("lentil soup", (("lentils", 300, "g"), ("carrots", 200, "g"), ("stock", 1200, "ml"))),
        ("rice pudding", (("rice", 240, "g"), ("milk", 1000, "ml"), ("sugar", 60, "g"))),
    ),
}


def recipe(draw: random.Random, language: str) -> Parts:
    dish, ingredients = draw.choice(_DISHES[language])
    people, guests = 4, draw.choice((2, 3, 5, 6, 7, 9, 10, 11, 14))
    factor = Fraction(guests, people)
    scaled = [(name, amount, amount * factor, unit) for name, amount, unit in ingredients]
    listed = enumeration([f"{amount} {unit} {name}" for name, amount, unit in ingredients], language)
    lines = [
        f"{name}: {amount} {unit} : {people} = {number(Fraction(amount, people), language)} {unit}; "
        f"{guests} · {number(Fraction(amount, people), language)} {unit} = {number(new, language)} {unit}."
        for name, amount, new, unit in scaled
    ]
    shown = [f"{number(new, language)} {unit} {name}" for name, _, new, unit in scaled]
    table = "\n".join(f"- {amount}" for amount in shown)
    amounts = enumeration(shown, language)
    checks = [f"{amount} · {number(factor, language)} = {number(new, language)}." for _, amount, new, _ in scaled]
    if language == "de":
        return (
            f"Ein Rezept für {dish} ist für {people} Personen: {listed}. Wie viel braucht man für {guests} Personen?",
            [f"Erst für eine Person, dann mal {guests}.", *lines],
            [f"Probe mit dem Faktor {guests}/{people} = {number(factor, language)}:", *checks],
            f"Für {guests} Personen:\n\n{table}",
            (f"Alles mal {number(factor, language)}: {amounts}."),
        )
    return (
        f"A recipe for {dish} serves {people}: {listed}. How much is needed for {guests} people?",
        [
            "First for one person, then times the guests.",
            *(line.replace(" : ", " / ").replace(" · ", " x ") for line in lines),
        ],
        [
            f"Check with the factor {guests}/{people} = {number(factor, language)}:",
            *(line.replace(" · ", " x ") for line in checks),
        ],
        f"For {guests} people:\n\n{table}",
        (f"Everything times {number(factor, language)}: {amounts}."),
    )


def missing_score(draw: random.Random, language: str) -> Parts:
    tests = draw.randint(4, 8)
    scores = [draw.randint(52, 96) for _ in range(tests - 1)]
    last = draw.randint(55, 100)
    last += -(sum(scores) + last) % tests
    mean = (sum(scores) + last) // tests
    so_far, needed = sum(scores), mean * tests
    running = [f"{sum(scores[:end])} + {scores[end]} = {sum(scores[: end + 1])}" for end in range(1, len(scores))]
    over = [score - mean for score in scores]
    listed = enumeration([str(score) for score in scores], language)
    if language == "de":
        return (
            (
                f"In {tests - 1} Tests hat Mina {listed} Punkte. Wie viele braucht sie im letzten Test für einen"
                f" Schnitt von {mean}?"
            ),
            [
                f"Nötig sind zusammen {tests} · {mean} = {needed} Punkte.",
                f"Bisher: {'; '.join(running)}.",
                f"Es fehlen {needed} - {so_far} = {last}.",
            ],
            [
                f"Probe: ({so_far} + {last}) : {tests} = {needed} : {tests} = {mean}.",
                (
                    f"Über Abweichungen vom Ziel: {', '.join(f'{value:+d}' for value in over)}; Summe {sum(over):+d}. "
                    f"Der letzte Test muss das ausgleichen: {mean} {signed(-sum(over), language)} = {last}."
                ),
            ],
            f"Mina braucht **{last} Punkte**.",
            f"{last} Punkte.",
        )
    return (
        f"In {tests - 1} tests Mina scored {listed}. What does she need in the last one for a mean of {mean}?",
        [
            f"Together {tests} x {mean} = {needed} points are needed.",
            f"So far: {'; '.join(running)}.",
            f"Missing: {needed} - {so_far} = {last}.",
        ],
        [
            f"Check: ({so_far} + {last}) / {tests} = {needed} / {tests} = {mean}.",
            (
                f"By distance from the goal: {', '.join(f'{value:+d}' for value in over)}; sum {sum(over):+d}. "
                f"The last test has to make up for that: {mean} {signed(-sum(over), language)} = {last}."
            ),
        ],
        f"Mina needs **{last} points**.",
        f"{last} points.",
    )


def up_and_down(draw: random.Random, language: str) -> Parts:
    price, up, down = draw.randint(4, 60) * 5, draw.choice((10, 20, 25, 40, 50)), draw.choice((10, 20, 25, 30))
    raised = Fraction(price * (100 + up), 100)
    final = raised * (100 - down) / 100
    factor = Fraction((100 + up) * (100 - down), 10_000)
    percent = (factor - 1) * 100

    def n(value: Fraction | int) -> str:
        return number(value, language, 4)

    def price_text(value: Fraction | int) -> str:
        return money(round(value * 100), language)

    kept = f"{n(Fraction(100 + up, 100))} · {n(Fraction(100 - down, 100))} = {n(factor)}"
    if language == "de":
        change = "unverändert" if percent == 0 else f"{n(abs(percent))} % {'teurer' if percent > 0 else 'billiger'}"
        return (
            (
                f"Ein Preis von {price_text(price)} steigt um {up} % und sinkt danach um {down} %. Wie hoch ist er am"
                " Ende, und um wie viel Prozent hat er sich insgesamt verändert?"
            ),
            [
                f"Nach der Erhöhung: {n(price)} · {n(Fraction(100 + up, 100))} = {n(raised)}.",
                f"Nach der Senkung: {n(raised)} · {n(Fraction(100 - down, 100))} = {n(final)}.",
                (
                    f"Die {down} % beziehen sich auf den erhöhten Preis, man darf also nicht einfach {up} - {down}"
                    " rechnen."
                ),
                f"Gesamtfaktor: {kept}. Das ist eine Änderung um {n(percent)} %.",
            ],
            [
                f"Probe: {n(price)} · {n(factor)} = {n(price * factor)}.",
                (
                    f"Die Reihenfolge spielt keine Rolle: {n(price)} · {n(Fraction(100 - down, 100))} ="
                    f" {n(Fraction(price * (100 - down), 100))}, und das mal {n(Fraction(100 + up, 100))} ist wieder"
                    f" {n(final)}."
                ),
            ],
            f"Am Ende sind es **{price_text(final)}**, also {change}.",
            f"{price_text(final)}, {change}.",
        )
    change = "unchanged" if percent == 0 else f"{n(abs(percent))}% {'more' if percent > 0 else 'less'}"
    return (
        (
            f"A price of {price_text(price)} rises by {up}% and then falls by {down}%. What is it in the end, and by"
            " how many percent has it changed overall?"
        ),
        [
            f"After the rise: {n(price)} x {n(Fraction(100 + up, 100))} = {n(raised)}.",
            f"After the fall: {n(raised)} x {n(Fraction(100 - down, 100))} = {n(final)}.",
            f"The {down}% is of the raised price, so it will not do to take {up} - {down}.",
            f"Overall factor: {kept.replace(' · ', ' x ')}. That is a change of {n(percent)}%.",
        ],
        [
            f"Check: {n(price)} x {n(factor)} = {n(price * factor)}.",
            (
                f"The order does not matter: {n(price)} x {n(Fraction(100 - down, 100))} ="
                f" {n(Fraction(price * (100 - down), 100))}, and that times {n(Fraction(100 + up, 100))} is {n(final)}"
                " again."
            ),
        ],
        f"In the end it is **{price_text(final)}**, which is {change}.",
        f"{price_text(final)}, {change}.",
    )
