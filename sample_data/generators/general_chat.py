"""Everyday chat, German and English: very short to a few exchanges, without reasoning."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from generators.common import CITIES, FIRST_NAMES, LANGUAGES, clock, distinct, enumeration, number
from generators.general_phrases import DISHES, GREETINGS, OUTINGS, PACKING, PROVERBS, WORDS

COUNT = 160
Turns = list[tuple[str, str]]


def capitalised(text: str) -> str:
    return text[0].upper() + text[1:]


def greeting(draw: random.Random, language: str) -> Turns:
    return [draw.choice(GREETINGS[language])]


def word(draw: random.Random, language: str) -> Turns:
    german, english, sentence_de, sentence_en = draw.choice(WORDS)
    if language == "de":
        return [(f"Wie heißt „{german}“ auf Englisch?", f"{capitalised(english)}."), ("Ein Beispielsatz?", sentence_en)]
    return [(f'What is "{english}" in German?', f"{capitalised(german)}."), ("An example, please?", sentence_de)]


def conversion(draw: random.Random, language: str) -> Turns:
    celsius = draw.randint(-15, 40)
    fahrenheit = number(Fraction(celsius * 9, 5) + 32, language)
    miles = draw.randint(3, 60)
    kilometres = number(Fraction(miles * 1609344, 1_000_000), language, 1)
    if language == "de":
        return [
            (f"Wie viel Fahrenheit sind {celsius} Grad Celsius?", f"{fahrenheit} °F."),
            (f"Und {miles} Meilen in Kilometern?", f"Rund {kilometres} km."),
        ]
    return [
        (f"What is {celsius} degrees Celsius in Fahrenheit?", f"{fahrenheit} °F."),
        (f"And {miles} miles in kilometres?", f"About {kilometres} km."),
    ]


def packing(draw: random.Random, language: str) -> Turns:
    days, kind = draw.randint(2, 9), draw.choice(list(PACKING[language]))
    things = draw.sample(PACKING[language][kind], 4)
    shirts = days + 1
    if language == "de":
        return [
            (
                f"Was packe ich für {days} Tage {kind} ein?",
                "Ich würde mitnehmen:\n\n"
                + "\n".join(f"- {thing}" for thing in things)
                + f"\n- {shirts} Hemden oder T-Shirts",
            ),
            (
                "Warum eins mehr, als es Tage sind?",
                f"Eins als Reserve: {days} für die Tage, 1 für den Fall, dass etwas nass wird.",
            ),
        ]
    return [
        (
            f"What do I pack for {days} days {kind}?",
            "I would take:\n\n" + "\n".join(f"- {thing}" for thing in things) + f"\n- {shirts} shirts",
        ),
        ("Why one more than there are days?", f"As a spare: {days} for the days and 1 in case something gets wet."),
    ]


def outing(draw: random.Random, language: str) -> Turns:
    city, start = draw.choice(CITIES), draw.randint(16, 22) * 30
    stops = draw.sample(OUTINGS[language], 3)
    moment, lines = start, []
    for name, minutes in stops:
        lines.append(f"- {clock(moment, language)}: {name}")
        moment += minutes + 30
    total = sum(minutes for _, minutes in stops)
    if language == "de":
        return [
            (
                (
                    f"Plane mir einen Tag in {city} ab {clock(start, language)}, drei Dinge, mit je einer halben Stunde"
                    " dazwischen."
                ),
                "\n".join([*lines, f"- {clock(moment - 30, language)}: Ende"]),
            ),
            (
                "Wie viel davon ist reine Programmzeit?",
                f"{enumeration([str(minutes) for _, minutes in stops], language)} Minuten, zusammen {total} Minuten.",
            ),
        ]
    return [
        (
            f"Plan a day in {city} for me from {clock(start, language)}: three things, with half an hour between them.",
            "\n".join([*lines, f"- {clock(moment - 30, language)}: the end"]),
        ),
        (
            "How much of that is programme?",
            f"{enumeration([str(minutes) for _, minutes in stops], language)} minutes, {total} minutes together.",
        ),
    ]


def cooking(draw: random.Random, language: str) -> Turns:
    name, shopping, steps = draw.choice(DISHES[language])
    person = draw.choice(FIRST_NAMES)
    if language == "de":
        return [
            (
                f"{person} kommt heute zum Essen. Wie mache ich {name}?",
                "\n".join(f"{place}. {step}" for place, step in enumerate(steps, 1)),
            ),
            ("Was muss ich einkaufen?", f"{capitalised(enumeration(list(shopping), language))}."),
        ]
    return [
        (
            f"{person} is coming for dinner. How do I make {name}?",
            "\n".join(f"{place}. {step}" for place, step in enumerate(steps, 1)),
        ),
        ("What do I have to buy?", f"{capitalised(enumeration(list(shopping), language))}."),
    ]


def proverb(draw: random.Random, language: str) -> Turns:
    saying, meaning = draw.choice(PROVERBS[language])
    if language == "de":
        return [(f"Was bedeutet „{saying}“?", meaning)]
    return [(f'What does "{saying}" mean?', meaning)]


MAKERS: tuple[Callable[[random.Random, str], Turns], ...] = (
    greeting,
    word,
    conversion,
    packing,
    outing,
    cooking,
    proverb,
)
THANKS = {
    "de": (
        ("Danke!", "Gern geschehen!"),
        ("Super, danke dir.", "Immer gern."),
        ("Alles klar.", "Schön! Sag Bescheid, wenn noch etwas ist."),
    ),
    "en": (
        ("Thanks!", "You're welcome!"),
        ("Great, thank you.", "Any time."),
        ("All right.", "Good! Let me know if there is more."),
    ),
}


def records() -> Iterator[dict[str, Any]]:
    """Records without an id: the toolkit gives them one."""
    yield from distinct("general_chat", COUNT, _record)


def _record(place: int, draw: random.Random) -> dict[str, Any]:
    language = LANGUAGES[place // len(MAKERS) % 2]
    turns = MAKERS[place % len(MAKERS)](draw, language)
    if draw.random() < 0.4:
        turns = [*turns, draw.choice(THANKS[language])]
    messages = [
        {"role": role, "content": content}
        for turn in turns
        for role, content in zip(("user", "assistant"), turn, strict=True)
    ]
    return {"dataset": "general_chat", "domain": "general", "difficulty": "easy", "messages": messages}
