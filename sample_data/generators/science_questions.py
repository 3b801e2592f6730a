"""Questions of physics, chemistry, biology and geography as Alpaca instructions: computed ones, and ones to explain."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from generators.common import LANGUAGES, distinct, number
from generators.science_facts import FACTS

COUNT = 150
Parts = tuple[str, list[str], str]


def thunder(draw: random.Random, language: str) -> Parts:
    seconds = draw.randint(2, 18)
    metres = 340 * seconds
    far = number(Fraction(metres, 1000), language)
    if language == "de":
        return (
            f"Zwischen Blitz und Donner vergehen {seconds} Sekunden. Wie weit ist das Gewitter entfernt?",
            [
                "Schall legt in Luft etwa 340 m je Sekunde zurück, das Licht ist praktisch sofort da.",
                f"340 m/s · {seconds} s = {metres} m.",
                (
                    f"Faustregel zur Kontrolle: Sekunden durch 3, also etwa {number(Fraction(seconds, 3), language, 1)}"
                    " km. Das passt."
                ),
            ],
            f"Ungefähr {far} km, denn 340 m/s · {seconds} s = {metres} m.",
        )
    return (
        f"{seconds} seconds pass between lightning and thunder. How far away is the storm?",
        [
            "Sound travels about 340 m a second in air, and light is there practically at once.",
            f"340 m/s x {seconds} s = {metres} m.",
            f"Rule of thumb: seconds divided by 3, so about {number(Fraction(seconds, 3), language, 1)} km. That fits.",
        ],
        f"About {far} km, because 340 m/s x {seconds} s = {metres} m.",
    )


def density(draw: random.Random, language: str) -> Parts:
    metals = (
        ("Aluminium", "aluminium", 270),
        ("Eisen", "iron", 787),
        ("Kupfer", "copper", 896),
        ("Silber", "silver", 1049),
        ("Blei", "lead", 1134),
        ("Gold", "gold", 1932),
    )
    german, english, hundredths = draw.choice(metals)
    volume = draw.randint(2, 60)
    mass = Fraction(hundredths * volume, 100)
    m, rho = number(mass, language), number(Fraction(hundredths, 100), language)
    table = [(g if language == "de" else e, number(Fraction(h, 100), language)) for g, e, h in metals]
    listed = ", ".join(f"{name} {value}" for name, value in table)
    if language == "de":
        return (
            (
                f"Ein Würfel aus reinem Metall hat ein Volumen von {volume} cm³ und wiegt {m} g. Welches Metall könnte"
                " es sein?"
            ),
            [
                f"Dichte = Masse durch Volumen: {m} g : {volume} cm³ = {rho} g/cm³.",
                f"Tabelle in g/cm³: {listed}.",
                f"{rho} ist genau der Wert von {german}.",
            ],
            f"Die Dichte ist {rho} g/cm³, das spricht für {german}.",
        )
    return (
        f"A cube of pure metal has a volume of {volume} cm³ and weighs {m} g. Which metal could it be?",
        [
            f"Density = mass over volume: {m} g / {volume} cm³ = {rho} g/cm³.",
            f"Table in g/cm³: {listed}.",
            f"{rho} is just the value of {english}.",
        ],
        f"Its density is {rho} g/cm³, which points to {english}.",
    )


def ohm(draw: random.Random, language: str) -> Parts:
    first, second = draw.randint(1, 20) * 10, draw.randint(1, 20) * 10
    total = first + second
    milliamperes = draw.randint(1, 9) * 10
    volts = Fraction(total * milliamperes, 1000)
    over = [Fraction(part * milliamperes, 1000) for part in (first, second)]
    u, u1, u2 = (number(value, language) for value in (volts, *over))
    if language == "de":
        return (
            (
                f"Zwei Widerstände von {first} Ω und {second} Ω liegen in Reihe an {u} V. Welcher Strom fließt, und"
                " welche Spannung liegt an jedem?"
            ),
            [
                f"In Reihe addieren sich die Widerstände: {first} + {second} = {total} Ω.",
                f"I = U : R = {u} V : {total} Ω = {milliamperes} mA.",
                f"U1 = {first} Ω · {milliamperes} mA = {u1} V.",
                f"U2 = {second} Ω · {milliamperes} mA = {u2} V.",
                f"Probe: {u1} V + {u2} V = {u} V.",
            ],
            f"Es fließen {milliamperes} mA; an den Widerständen liegen {u1} V und {u2} V.",
        )
    return (
        (
            f"Two resistors of {first} Ω and {second} Ω are in series at {u} V. What current flows, and what is the"
            " voltage across each?"
        ),
        [
            f"In series the resistances add up: {first} + {second} = {total} Ω.",
            f"I = U / R = {u} V / {total} Ω = {milliamperes} mA.",
            f"U1 = {first} Ω x {milliamperes} mA = {u1} V.",
            f"U2 = {second} Ω x {milliamperes} mA = {u2} V.",
            f"Check: {u1} V + {u2} V = {u} V.",
        ],
        f"{milliamperes} mA flow; the voltages are {u1} V and {u2} V.",
    )


def half_life(draw: random.Random, language: str) -> Parts:
    isotopes = (
        ("Iod-131", "iodine-131", 8, "Tage", "days"),
        ("Radon-222", "radon-222", 4, "Tage", "days"),
        ("Cäsium-137", "caesium-137", 30, "Jahre", "years"),
        ("Tritium", "tritium", 12, "Jahre", "years"),
    )
    german, english, life, unit_de, unit_en = draw.choice(isotopes)
    halvings, start = draw.randint(2, 6), draw.choice((64, 128, 320, 640, 960))
    steps = [Fraction(start, 2**step) for step in range(halvings + 1)]
    n = [number(value, language, 3) for value in steps]
    if language == "de":
        return (
            (
                f"{german} hat eine Halbwertszeit von rund {life} {unit_de}n. Wie viel ist von {start} mg nach"
                f" {life * halvings} {unit_de}n übrig?"
            ),
            [
                f"{life * halvings} : {life} = {halvings} Halbwertszeiten.",
                *(
                    f"Nach {life * step} {unit_de}n: {n[step - 1]} mg : 2 = {n[step]} mg."
                    for step in range(1, halvings + 1)
                ),
                f"Probe: {start} : 2^{halvings} = {start} : {2**halvings} = {n[-1]}.",
            ],
            f"Übrig sind {n[-1]} mg.",
        )
    return (
        (
            f"{english.capitalize()} has a half-life of about {life} {unit_en}. How much of {start} mg is left after"
            f" {life * halvings} {unit_en}?"
        ),
        [
            f"{life * halvings} / {life} = {halvings} half-lives.",
            *(
                f"After {life * step} {unit_en}: {n[step - 1]} mg / 2 = {n[step]} mg."
                for step in range(1, halvings + 1)
            ),
            f"Check: {start} / 2^{halvings} = {start} / {2**halvings} = {n[-1]}.",
        ],
        f"{n[-1]} mg are left.",
    )


def lever(draw: random.Random, language: str) -> Parts:
    weight, arm = draw.randint(20, 45), draw.choice((120, 150, 180, 200, 240))
    other = draw.choice([value for value in range(15, 60) if weight * arm % value == 0 and value != weight] or [weight])
    distance = weight * arm // other
    moment = weight * arm
    if language == "de":
        return (
            (
                f"Auf einer Wippe sitzt ein Kind von {weight} kg {arm} cm vom Drehpunkt. Wo muss ein Kind von {other}"
                " kg sitzen, damit Gleichgewicht herrscht?"
            ),
            [
                "Im Gleichgewicht ist Masse mal Abstand auf beiden Seiten gleich.",
                f"Links: {weight} · {arm} = {moment}.",
                f"Rechts: {other} · x = {moment}, also x = {moment} : {other} = {distance}.",
                (
                    f"Das {'leichtere' if other < weight else 'schwerere' if other > weight else 'gleich schwere'} Kind"
                    " sitzt"
                    f" {'weiter außen' if distance > arm else 'weiter innen' if distance < arm else 'gleich weit'}, wie"
                    " es sein muss."
                ),
            ],
            f"{distance} cm vom Drehpunkt auf der anderen Seite.",
        )
    return (
        (
            f"A child of {weight} kg sits on a seesaw, {arm} cm from the pivot. Where must a child of {other} kg sit"
            " for balance?"
        ),
        [
            "In balance, mass times distance is the same on both sides.",
            f"Left: {weight} x {arm} = {moment}.",
            f"Right: {other} x d = {moment}, so d = {moment} / {other} = {distance}.",
            (
                f"The {'lighter' if other < weight else 'heavier' if other > weight else 'equally heavy'} child sits"
                f" {'further out' if distance > arm else 'further in' if distance < arm else 'just as far out'}, as it"
                " must."
            ),
        ],
        f"{distance} cm from the pivot, on the other side.",
    )


def scale(draw: random.Random, language: str) -> Parts:
    ratio = draw.choice((10_000, 25_000, 50_000, 100_000))
    tenths = draw.randint(12, 180)
    metres = ratio * tenths // 1000
    pace = draw.choice((4, 5))
    minutes = Fraction(metres * 60, 1000 * pace)
    km, cm, shown = (
        number(Fraction(metres, 1000), language, 3),
        number(Fraction(tenths, 10), language),
        number(minutes, language, 0),
    )
    written = number(ratio, language)
    if language == "de":
        return (
            (
                f"Auf einer Wanderkarte 1:{written} misst ein Weg {cm} cm. Wie lang ist er, und wie lange geht man bei"
                f" {pace} km/h?"
            ),
            [
                f"1 cm auf der Karte sind {written} cm = {number(Fraction(ratio, 100), language)} m.",
                f"{cm} · {number(Fraction(ratio, 100), language)} m = {number(metres, language)} m = {km} km.",
                f"Bei {pace} km/h: {km} : {pace} h, das sind rund {shown} min.",
            ],
            f"Der Weg ist {km} km lang; man geht etwa {shown} Minuten.",
        )
    return (
        (
            f"On a hiking map of 1:{written} a path measures {cm} cm. How long is it, and how long does it take at"
            f" {pace} km/h?"
        ),
        [
            f"1 cm on the map is {written} cm = {number(Fraction(ratio, 100), language)} m.",
            f"{cm} x {number(Fraction(ratio, 100), language)} m = {number(metres, language)} m = {km} km.",
            f"At {pace} km/h: {km} / {pace} h, which is about {shown} min.",
        ],
        f"The path is {km} km long and takes about {shown} minutes.",
    )


MAKERS: tuple[Callable[[random.Random, str], Parts], ...] = (thunder, density, ohm, half_life, lever, scale)


def records() -> Iterator[dict[str, Any]]:
    for place, (question, thought, answer) in enumerate(FACTS):
        yield _record("easy" if place % 3 else "medium", question, thought, answer)
    yield from distinct("science_questions", COUNT, _computed)


def _computed(place: int, draw: random.Random) -> dict[str, Any]:
    language = LANGUAGES[place // len(MAKERS) % 2]
    question, steps, answer = MAKERS[place % len(MAKERS)](draw, language)
    thought = " ".join(steps[: len(steps) - draw.choice((0, 0, 1))])
    return _record("medium", question, thought, answer)


def _record(difficulty: str, question: str, thought: str, answer: str) -> dict[str, Any]:
    labels = {"dataset": "science_questions", "domain": "science", "difficulty": difficulty}
    output = f"<think>\n{thought}\n</think>\n\n{answer}" if thought else answer
    return {"instruction": question, "input": "", "output": output, **labels}
