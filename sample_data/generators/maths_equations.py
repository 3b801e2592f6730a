"""Problems that an equation solves."""

from __future__ import annotations

import random
from fractions import Fraction

from generators.common import CITIES, Parts, clock, money, number, signed


def linear_equation(draw: random.Random, language: str) -> Parts:
    x = draw.choice([value for value in range(-9, 13) if value])
    a = draw.randint(2, 9)
    c = draw.choice([value for value in range(1, 10) if value != a])
    b = draw.randint(-9, 9) or 4
    d = a * (x + b) - c * x
    left, right = f"{a}(x {signed(b, language)})", f"{c}x {signed(d, language)}"
    coefficient, constant = a - c, d - a * b
    solved = [
        f"{left} = {right}",
        f"{a}x {signed(a * b, language)} = {right}",
        f"{a}x - {c}x = {d} {signed(-a * b, language)}",
        f"{coefficient}x = {constant}",
        f"x = {constant} / {coefficient} = {x}",
    ]
    value = a * (x + b)
    if language == "de":
        return (
            f"Löse die Gleichung {left} = {right}.",
            [
                f"Die Gleichung: {solved[0]}.",
                f"Klammer auflösen: {solved[1]}.",
                f"x nach links, Zahlen nach rechts: {solved[2]}.",
                f"Zusammenfassen: {solved[3]}.",
                f"Teilen: {solved[4]}.",
            ],
            [
                f"Probe links: {a} · ({x} {signed(b, language)}) = {a} · ({x + b}) = {value}.",
                (
                    f"Probe rechts: {c} · ({x}) {signed(d, language)} = {c * x} {signed(d, language)} = {c * x + d}."
                    " Beide Seiten sind gleich."
                ),
                f"Es ist die einzige Lösung, denn der Faktor {coefficient} vor x ist nicht 0.",
            ],
            "\n".join([f"{step}  " for step in solved]) + f"\n\nDie Lösung ist **x = {x}**.",
            f"x = {x}",
        )
    return (
        f"Solve the equation {left} = {right}.",
        [
            f"The equation: {solved[0]}.",
            f"Expand the bracket: {solved[1]}.",
            f"x to the left, numbers to the right: {solved[2]}.",
            f"Collect: {solved[3]}.",
            f"Divide: {solved[4]}.",
        ],
        [
            f"Check on the left: {a} x ({x} {signed(b, language)}) = {a} x ({x + b}) = {value}.",
            (
                f"Check on the right: {c} x ({x}) {signed(d, language)} = {c * x} {signed(d, language)} = {c * x + d}."
                " Both sides agree."
            ),
            f"It is the only solution, since the factor {coefficient} of x is not 0.",
        ],
        "\n".join([f"{step}  " for step in solved]) + f"\n\nThe solution is **x = {x}**.",
        f"x = {x}",
    )


def tickets(draw: random.Random, language: str) -> Parts:
    adults, children = draw.randint(12, 80), draw.randint(15, 90)
    price_adult, price_child = draw.choice(((900, 500), (1200, 700), (1050, 600), (850, 450)))
    people, takings = adults + children, adults * price_adult + children * price_child
    all_children = people * price_child
    surplus, difference = takings - all_children, price_adult - price_child
    guess = people // 2
    guessed = guess * price_adult + (people - guess) * price_child

    def m(cents: int) -> str:
        return money(cents, language)

    if language == "de":
        return (
            (
                f"Zu einer Aufführung kamen {people} Gäste. Erwachsene zahlten {m(price_adult)}, Kinder"
                f" {m(price_child)}. Eingenommen wurden {m(takings)}. Wie viele Erwachsene und wie viele Kinder"
                " waren es?"
            ),
            [
                f"E + K = {people} und {m(price_adult)} · E + {m(price_child)} · K = {m(takings)}.",
                f"Wären alle Kinder, käme man auf {people} · {m(price_child)} = {m(all_children)}.",
                f"Es fehlen {m(takings)} - {m(all_children)} = {m(surplus)}.",
                f"Jeder Erwachsene bringt {m(difference)} mehr: {m(surplus)} : {m(difference)} = {adults} Erwachsene.",
                f"Kinder: {people} - {adults} = {children}.",
            ],
            [
                (
                    f"Probe: {adults} · {m(price_adult)} = {m(adults * price_adult)} und {children} · {m(price_child)}"
                    f" = {m(children * price_child)}, zusammen {m(takings)}."
                ),
                (
                    f"Ein Vergleich durch Probieren: mit {guess} Erwachsenen wären es {m(guessed)}, also"
                    f" {'zu wenig' if guessed < takings else 'zu viel' if guessed > takings else 'genau richtig'}. Die"
                    f" Abweichung von {m(abs(takings - guessed))} entspricht {abs(adults - guess)} Erwachsenen, das"
                    f" führt wieder auf {adults}."
                ),
                "Beide Anzahlen sind ganz und nicht negativ, wie es sein muss.",
            ],
            f"Es waren **{adults} Erwachsene** und **{children} Kinder**.",
            f"{adults} Erwachsene, {children} Kinder.",
        )
    return (
        (
            f"{people} people came to a show. Adults paid {m(price_adult)}, children {m(price_child)}, and {m(takings)}"
            " was taken. How many adults and how many children were there?"
        ),
        [
            f"A + C = {people}, and {m(price_adult)} x A + {m(price_child)} x C = {m(takings)}.",
            f"If all were children, the takings would be {people} x {m(price_child)} = {m(all_children)}.",
            f"Missing from that: {m(takings)} - {m(all_children)} = {m(surplus)}.",
            f"Each adult adds {m(difference)}: {m(surplus)} / {m(difference)} = {adults} adults.",
            f"Children: {people} - {adults} = {children}.",
        ],
        [
            (
                f"Check: {adults} x {m(price_adult)} = {m(adults * price_adult)} and {children} x {m(price_child)} = "
                f"{m(children * price_child)}, together {m(takings)}."
            ),
            (
                f"A guess to compare with: {guess} adults would give {m(guessed)}, which is"
                f" {'too little' if guessed < takings else 'too much' if guessed > takings else 'exactly right'}. Being"
                f" off by {m(abs(takings - guessed))} means {abs(adults - guess)} adults, which leads to {adults}"
                " again."
            ),
            "Both counts are whole and not negative, as they must be.",
        ],
        f"There were **{adults} adults** and **{children} children**.",
        f"{adults} adults, {children} children.",
    )


def cyclists(draw: random.Random, language: str) -> Parts:
    first, second = draw.sample((12, 15, 16, 18, 20, 21, 24, 27, 30), 2)
    minutes = draw.choice((20, 40, 60, 80, 100, 120))
    minutes = minutes if first * minutes % 60 == 0 == second * minutes % 60 else 60
    distance = (first + second) * minutes // 60
    start = draw.randrange(7 * 4, 15 * 4) * 15
    town, other = draw.sample(CITIES, 2)
    ridden, rest = Fraction(first * minutes, 60), Fraction(second * minutes, 60)

    def n(value: Fraction | int) -> str:
        return number(value, language)

    def t(moment: int) -> str:
        return clock(moment, language)

    ticks = [tick for tick in range(20, minutes, 20) if (first + second) * tick % 3 == 0]
    if language == "de":
        return (
            (
                f"Zwischen zwei Radlern, einer aus {town} mit {first} km/h, einer aus {other} mit {second} km/h, liegen"
                f" um {t(start)} noch {distance} km. Sie fahren aufeinander zu. Wann und wo treffen sie sich?"
            ),
            [
                f"Zusammen kommen sie sich je Stunde um {first} + {second} = {first + second} km näher.",
                f"Zeit: {distance} : {first + second} Stunden, in Minuten"
                f" {distance} · 60 : {first + second} = {minutes}.",
                f"Treffpunkt um {t(start + minutes)}.",
                f"Der erste ist dann {first} · {minutes}/60 = {n(ridden)} km gefahren.",
            ],
            [
                (
                    f"Der zweite fährt {second} · {minutes}/60 = {n(rest)} km, zusammen {n(ridden)} + {n(rest)} ="
                    f" {distance} km."
                ),
                "Schritt für Schritt: "
                + "; ".join(
                    f"nach {tick} min Abstand {n(distance - Fraction((first + second) * tick, 60))} km"
                    for tick in ticks
                )
                + f"{'; ' if ticks else ''}nach {minutes} min 0 km.",
            ],
            f"Sie treffen sich um **{t(start + minutes)}**, {n(ridden)} km vom Startort des ersten entfernt.",
            f"Um {t(start + minutes)}, nach {n(ridden)} km des ersten.",
        )
    return (
        (
            f"Two cyclists ride towards each other, one from {town} at {first} km/h, one from {other} at {second} km/h."
            f" At {t(start)} they are {distance} km apart. When and where do they meet?"
        ),
        [
            f"Together they close {first} + {second} = {first + second} km an hour.",
            f"Time: {distance} / {first + second} hours, in minutes {distance} x 60 / {first + second} = {minutes}.",
            f"They meet at {t(start + minutes)}.",
            f"By then the first has ridden {first} x {minutes}/60 = {n(ridden)} km.",
        ],
        [
            (
                f"The second rides {second} x {minutes}/60 = {n(rest)} km; together {n(ridden)} + {n(rest)} ="
                f" {distance} km."
            ),
            "Step by step: "
            + "; ".join(
                f"after {tick} min the gap is {n(distance - Fraction((first + second) * tick, 60))} km"
                for tick in ticks
            )
            + f"{'; ' if ticks else ''}after {minutes} min it is 0 km.",
        ],
        f"They meet at **{t(start + minutes)}**, {n(ridden)} km from where the first one started.",
        f"At {t(start + minutes)}, after {n(ridden)} km of the first.",
    )
