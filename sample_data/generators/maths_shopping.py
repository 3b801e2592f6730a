"""Easy problems about buying and sharing."""

from __future__ import annotations

import random
from fractions import Fraction

from generators.common import FIRST_NAMES, Parts, money, number

_GOODS = {
    "de": (
        ("Brezeln", 85),
        ("Hefte", 129),
        ("Apfelschorlen", 240),
        ("Postkarten", 110),
        ("Mohnbrötchen", 75),
        ("Bleistifte", 65),
    ),
    "en": (
        ("pretzels", 85),
        ("notebooks", 129),
        ("apple juices", 240),
        ("postcards", 110),
        ("poppy rolls", 75),
        ("pencils", 65),
    ),
}


_SHARED = {
    "de": ("Murmeln", "Sticker", "Kastanien", "Nüsse", "Spielkarten", "Muscheln"),
    "en": ("marbles", "stickers", "chestnuts", "nuts", "cards", "shells"),
}


def change(draw: random.Random, language: str) -> Parts:
    name = draw.choice(FIRST_NAMES)
    (many_a, price_a), (many_b, price_b) = draw.sample(_GOODS[language], 2)
    count_a, count_b = draw.randint(2, 6), draw.randint(2, 5)
    cost_a, cost_b = count_a * price_a, count_b * price_b
    total = cost_a + cost_b
    note = next(note for note in (500, 1000, 2000, 5000) if note >= total)
    back = note - total

    def m(cents: int) -> str:
        return money(cents, language)

    if language == "de":
        return (
            (
                f"{name} kauft {count_a} {many_a} zu je {m(price_a)} und {count_b} {many_b} zu je {m(price_b)} und"
                f" zahlt mit einem {note // 100}-Euro-Schein. Wie viel Rückgeld gibt es?"
            ),
            [
                f"{count_a} · {m(price_a)} = {m(cost_a)}.",
                f"{count_b} · {m(price_b)} = {m(cost_b)}.",
                f"Zusammen {m(cost_a)} + {m(cost_b)} = {m(total)}.",
                f"Rückgeld: {m(note)} - {m(total)} = {m(back)}.",
            ],
            [
                f"Probe: {m(total)} + {m(back)} = {m(note)}, das passt.",
                (
                    f"Überschlag: etwa {round(total / 100)} Euro von {note // 100}, es bleiben ungefähr"
                    f" {round(back / 100)}."
                ),
            ],
            f"Der Einkauf kostet {m(total)}. {name} bekommt **{m(back)}** zurück.",
            f"{name} bekommt {m(back)} zurück.",
        )
    return (
        (
            f"{name} buys {count_a} {many_a} at {m(price_a)} each and {count_b} {many_b} at {m(price_b)} each, and pays"
            f" with a {note // 100} euro note. How much change is due?"
        ),
        [
            f"{count_a} x {m(price_a)} = {m(cost_a)}.",
            f"{count_b} x {m(price_b)} = {m(cost_b)}.",
            f"Together {m(cost_a)} + {m(cost_b)} = {m(total)}.",
            f"Change: {m(note)} - {m(total)} = {m(back)}.",
        ],
        [
            f"Check: {m(total)} + {m(back)} = {m(note)}, which fits.",
            (
                f"Roughly {round(total / 100)} of {note // 100} euros are spent, so about {round(back / 100)} should be"
                " left."
            ),
        ],
        f"The purchase costs {m(total)}. {name} gets **{m(back)}** back.",
        f"{name} gets {m(back)} back.",
    )


def sharing(draw: random.Random, language: str) -> Parts:
    things = draw.choice(_SHARED[language])
    children, each = draw.randint(3, 9), draw.randint(5, 24)
    left = draw.randrange(children)
    total = children * each + left
    if language == "de":
        rest = f"{left} bleiben übrig" if left > 1 else "1 bleibt übrig" if left else "es bleibt nichts übrig"
        return (
            (
                f"{children} Kinder teilen {total} {things} gerecht unter sich auf. Wie viele bekommt jedes, und was"
                " bleibt übrig?"
            ),
            [
                f"{total} : {children}. {children} · {each} = {children * each}.",
                f"{total} - {children * each} = {left}, das ist weniger als {children}.",
            ],
            [
                f"Probe: {children} · {each} + {left} = {total}.",
                f"Mit {each + 1} für jedes bräuchte man {children * (each + 1)}, so viele sind nicht da.",
            ],
            f"Jedes Kind bekommt **{each}** {things}, {rest}.",
            f"Jedes bekommt {each}, {rest}.",
        )
    rest = f"{left} are left over" if left > 1 else "1 is left over" if left else "nothing is left over"
    return (
        f"{children} children share {total} {things} fairly. How many does each get, and what is left over?",
        [
            f"{total} divided by {children}: {children} x {each} = {children * each}.",
            f"{total} - {children * each} = {left}, which is less than {children}.",
        ],
        [
            f"Check: {children} x {each} + {left} = {total}.",
            f"With {each + 1} each, {children * (each + 1)} would be needed, and there are not that many.",
        ],
        f"Each child gets **{each}** {things}, and {rest}.",
        f"{each} each; {rest}.",
    )


def discount(draw: random.Random, language: str) -> Parts:
    percent = draw.choice((5, 10, 15, 20, 25, 30, 40))
    price = draw.randint(6, 90) * 200
    off = price * percent // 100
    tenth = price // 10

    def m(cents: int) -> str:
        return money(cents, language)

    if language == "de":
        return (
            f"Eine Jacke kostet {m(price)}. Im Schlussverkauf gibt es {percent} % Rabatt. Was kostet sie dann?",
            [
                f"1 % von {m(price)} sind {m(price // 100)}.",
                f"{percent} % sind {percent} · {m(price // 100)} = {m(off)}.",
                f"{m(price)} - {m(off)} = {m(price - off)}.",
            ],
            [
                (
                    f"Über 10 %: das sind {m(tenth)}, und {percent} % sind"
                    f" {number(Fraction(percent, 10), language)}-mal so viel, also {m(off)}."
                ),
                (
                    f"Andersherum: {100 - percent} % von {m(price)} sind {100 - percent} · {m(price // 100)} ="
                    f" {m(price - off)}."
                ),
            ],
            f"Der Rabatt beträgt {m(off)}, die Jacke kostet noch **{m(price - off)}**.",
            f"Sie kostet {m(price - off)}.",
        )
    return (
        f"A jacket costs {m(price)}. It is {percent}% off in the sale. What does it cost then?",
        [
            f"1% of {m(price)} is {m(price // 100)}.",
            f"{percent}% is {percent} x {m(price // 100)} = {m(off)}.",
            f"{m(price)} - {m(off)} = {m(price - off)}.",
        ],
        [
            (
                f"By way of 10%: that is {m(tenth)}, and {percent}% is {number(Fraction(percent, 10), language)} times"
                f" as much, so {m(off)}."
            ),
            (
                f"The other way round: {100 - percent}% of {m(price)} is {100 - percent} x {m(price // 100)} ="
                f" {m(price - off)}."
            ),
        ],
        f"The discount is {m(off)}, so the jacket costs **{m(price - off)}**.",
        f"It costs {m(price - off)}.",
    )
