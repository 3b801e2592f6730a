"""Easy problems about times, days and lengths."""

from __future__ import annotations

import random

from generators.common import Parts, clock

_DAYS = {
    "de": ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"),
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
}


def arrival(draw: random.Random, language: str) -> Parts:
    start = draw.randrange(6 * 60, 21 * 60)
    duration = draw.randint(35, 290)
    hours, minutes = divmod(duration, 60)
    after_hours = start + 60 * hours

    def t(moment: int) -> str:
        return clock(moment, language)

    if language == "de":
        return (
            f"Ein Zug fährt um {t(start)} ab und ist {duration} Minuten unterwegs. Wann kommt er an?",
            [
                f"{duration} Minuten sind {hours} h und {minutes} min, denn {hours} · 60 = {60 * hours}.",
                f"{t(start)} plus {hours} h ist {t(after_hours)}.",
                f"Dazu {minutes} min: {t(start + duration)}.",
            ],
            [
                (
                    f"Rückwärts: von {t(start + duration)} {minutes} min zurück ist {t(after_hours)}, {hours} h davor"
                    f" {t(start)}."
                ),
                f"In Minuten seit Mitternacht: {start} + {duration} = {start + duration}.",
            ],
            f"Der Zug kommt um **{t(start + duration)}** an.",
            f"Ankunft ist um {t(start + duration)}.",
        )
    return (
        f"A train leaves at {t(start)} and travels for {duration} minutes. When does it arrive?",
        [
            f"{duration} minutes are {hours} h {minutes} min, because {hours} x 60 = {60 * hours}.",
            f"{t(start)} plus {hours} h is {t(after_hours)}.",
            f"Add {minutes} min: {t(start + duration)}.",
        ],
        [
            (
                f"Backwards: {minutes} min before {t(start + duration)} is {t(after_hours)}, and {hours} h earlier"
                f" {t(start)}."
            ),
            f"In minutes since midnight: {start} + {duration} = {start + duration}.",
        ],
        f"The train arrives at **{t(start + duration)}**.",
        f"It arrives at {t(start + duration)}.",
    )


def fence(draw: random.Random, language: str) -> Parts:
    length, width = draw.randint(13, 40), draw.randint(11, 25)
    gate = draw.randint(1, 3)
    around, area = 2 * (length + width), length * width
    if language == "de":
        return (
            (
                f"Ein rechteckiger Garten ist {length} m lang und {width} m breit. Er bekommt einen Zaun mit einer"
                f" {gate} m breiten Lücke für das Tor. Wie viel Meter Zaun braucht man, und wie groß ist der Garten?"
            ),
            [
                f"Umfang: 2 · ({length} + {width}) = 2 · {length + width} = {around} m.",
                f"Ohne Tor: {around} - {gate} = {around - gate} m.",
                f"Fläche: {length} · {width} = {area} m².",
            ],
            [
                f"Die vier Seiten einzeln: {length} + {width} + {length} + {width} = {around}.",
                (
                    f"{length} · {width} zerlegt: {length} · 10 + {length} · {width - 10} = "
                    f"{length * 10} + {length * (width - 10)} = {area}."
                ),
            ],
            f"Man braucht **{around - gate} m** Zaun. Der Garten ist **{area} m²** groß.",
            f"{around - gate} m Zaun, {area} m² Garten.",
        )
    return (
        (
            f"A rectangular garden is {length} m long and {width} m wide. It gets a fence with a gap of {gate} m for"
            " the gate. How many metres of fence are needed, and how large is the garden?"
        ),
        [
            f"Perimeter: 2 x ({length} + {width}) = 2 x {length + width} = {around} m.",
            f"Without the gate: {around} - {gate} = {around - gate} m.",
            f"Area: {length} x {width} = {area} square metres.",
        ],
        [
            f"Side by side: {length} + {width} + {length} + {width} = {around}.",
            (
                f"{length} x {width} in parts: {length} x 10 + {length} x {width - 10} = "
                f"{length * 10} + {length * (width - 10)} = {area}."
            ),
        ],
        f"**{around - gate} m** of fence are needed. The garden measures **{area} square metres**.",
        f"{around - gate} m of fence, {area} square metres of garden.",
    )


def weekday(draw: random.Random, language: str) -> Parts:
    today, ahead = draw.randrange(7), draw.randint(15, 300)
    weeks, rest = divmod(ahead, 7)
    names = _DAYS[language]
    then = names[(today + rest) % 7]
    if language == "de":
        walk = " → ".join(names[(today + step) % 7] for step in range(rest + 1))
        return (
            f"Heute ist {names[today]}. Welcher Wochentag ist in {ahead} Tagen?",
            [
                f"{ahead} : 7 = {weeks} Rest {rest}.",
                f"Nach {weeks} ganzen Wochen ist wieder {names[today]}, dann noch {rest}: {walk}.",
            ],
            [f"Probe: 7 · {weeks} + {rest} = {ahead}."],
            f"In {ahead} Tagen ist **{then}**.",
            f"{then}.",
        )
    walk = " -> ".join(names[(today + step) % 7] for step in range(rest + 1))
    return (
        f"Today is {names[today]}. What day of the week is it in {ahead} days?",
        [
            f"{ahead} divided by 7 is {weeks}, remainder {rest}.",
            f"After {weeks} whole weeks it is {names[today]} again, then {rest} more: {walk}.",
        ],
        [f"Check: 7 x {weeks} + {rest} = {ahead}."],
        f"In {ahead} days it is **{then}**.",
        f"{then}.",
    )
