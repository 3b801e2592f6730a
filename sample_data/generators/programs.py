"""Small Python functions with one fault each. Code review and agent runs take them; what they return is really run."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Program:
    """`fault` and `task` are in German and English; `fix` replaces `bad` in the source to make it right."""

    name: str
    source: str
    bad: str
    fix: str
    task: dict[str, str]
    fault: dict[str, str]
    cases: list[tuple[Any, ...]]

    @property
    def fixed(self) -> str:
        return self.source.replace(self.bad, self.fix)

    def outcome(self, source: str, case: tuple[Any, ...]) -> str:
        """What the function answers for a case, as Python shows it, or the exception that it raises."""
        scope: dict[str, Any] = {}
        exec(source, scope)  # sources written below
        arguments = [list(value) if isinstance(value, list) else value for value in case]
        try:
            return repr(scope[self.name](*arguments))
        except Exception as fault:
            return f"{type(fault).__name__}: {fault}"

    def call(self, case: tuple[Any, ...]) -> str:
        return f"{self.name}({', '.join(map(repr, case))})"

    def failing(self) -> list[tuple[Any, ...]]:
        return [case for case in self.cases if self.outcome(self.source, case) != self.outcome(self.fixed, case)]


def _numbers(draw: random.Random, low: int, high: int, count: int) -> list[int]:
    return [draw.randint(low, high) for _ in range(count)]


def mean(draw: random.Random) -> Program:
    noun = draw.choice(("temperatures", "prices", "scores", "weights", "distances"))
    return Program(
        f"mean_{noun}",
        f"def mean_{noun}({noun}):\n    total = 0\n    for value in {noun}:\n        total += value\n    return total /"
        f" len({noun})\n",
        f"    return total / len({noun})\n",
        f"    return total / len({noun}) if {noun} else None\n",
        {
            "de": "Die Funktion soll den Mittelwert liefern und None, wenn nichts da ist.",
            "en": "It should return the mean, and None if there is nothing.",
        },
        {"de": "Bei einer leeren Liste wird durch 0 geteilt.", "en": "An empty list leads to a division by zero."},
        [(_numbers(draw, 1, 40, draw.randint(3, 6)),), ([],), (_numbers(draw, 1, 40, 2),)],
    )


def moving_sum(draw: random.Random) -> Program:
    noun = draw.choice(("sales", "steps", "readings", "visits"))
    width = draw.randint(2, 4)
    return Program(
        "moving_sum",
        f"def moving_sum({noun}, width):\n    sums = []\n    for start in range(len({noun}) - width):\n"
        f"        sums.append(sum({noun}[start:start + width]))\n    return sums\n",
        f"range(len({noun}) - width)",
        f"range(len({noun}) - width + 1)",
        {
            "de": "Die Funktion soll die Summe jedes Fensters der Breite width liefern.",
            "en": "It should return the sum of every window of the given width.",
        },
        {
            "de": "range endet zu früh: das letzte Fenster fehlt.",
            "en": "The range stops too early: the last window is missing.",
        },
        [
            (_numbers(draw, 1, 20, draw.randint(5, 8)), width),
            (_numbers(draw, 1, 9, width), width),
            (_numbers(draw, 1, 9, 6), 1),
        ],
    )


def leap_year(draw: random.Random) -> Program:
    return Program(
        "is_leap_year",
        "def is_leap_year(year):\n    return year % 4 == 0\n",
        "    return year % 4 == 0\n",
        "    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n",
        {
            "de": "Die Funktion soll nach dem gregorianischen Kalender sagen, ob ein Jahr ein Schaltjahr ist.",
            "en": "It should tell by the Gregorian calendar whether a year is a leap year.",
        },
        {
            "de": "Volle Jahrhunderte sind nur dann Schaltjahre, wenn 400 sie teilt.",
            "en": "Whole centuries are leap years only if 400 divides them.",
        },
        [
            (draw.randrange(1904, 2096, 4),),
            (draw.choice((1700, 1800, 1900, 2100)),),
            (2000,),
            (draw.randrange(1905, 2095, 2) | 1,),
        ],
    )


def count_words(draw: random.Random) -> Program:
    texts = (
        "ein  Satz mit zwei Leerzeichen",
        "red  green   blue",
        " am Anfang",
        "the end ",
        "eins\nzwei drei",
        "one\ttwo",
    )
    return Program(
        "count_words",
        'def count_words(text):\n    return len(text.split(" "))\n',
        'text.split(" ")',
        "text.split()",
        {"de": "Die Funktion soll die Wörter eines Textes zählen.", "en": "It should count the words of a text."},
        {
            "de": (
                'split(" ") trennt an jedem einzelnen Leerzeichen und liefert dabei leere Wörter; andere Zwischenräume'
                " trennt es gar nicht."
            ),
            "en": (
                'split(" ") cuts at every single space and so yields empty words, and it does not cut at other white'
                " space."
            ),
        },
        [(text,) for text in draw.sample(texts, 3)] + [("",)],
    )


def binary_search(draw: random.Random) -> Program:
    noun = draw.choice(("numbers", "years", "pages"))
    values = sorted(draw.sample(range(3, 90), draw.randint(5, 9)))
    return Program(
        "find",
        f"def find({noun}, wanted):\n    low, high = 0, len({noun}) - 1\n    while low < high:\n        middle = (low +"
        f" high) // 2\n        if {noun}[middle] == wanted:\n            return middle\n        if {noun}[middle] <"
        " wanted:\n            low = middle + 1\n        else:\n            high = middle - 1\n    return None\n",
        "while low < high:",
        "while low <= high:",
        {
            "de": "Die Funktion soll in einer sortierten Liste die Stelle einer Zahl finden.",
            "en": "It should find the place of a number in a sorted list.",
        },
        {
            "de": "Ist nur noch ein Platz übrig (low == high), wird er nicht mehr angesehen.",
            "en": "When one place is left (low == high) it is never looked at.",
        },
        [(values, wanted) for wanted in draw.sample(values, 3)]
        + [(values, values[-1]), (values, values[0]), (values, 100)],
    )


def remove_all(draw: random.Random) -> Program:
    bad = draw.randint(0, 9)
    values = [bad, bad, *_numbers(draw, 0, 9, 4), bad]
    return Program(
        "without",
        "def without(values, unwanted):\n    for value in values:\n        if value == unwanted:\n           "
        " values.remove(value)\n    return values\n",
        "    for value in values:\n        if value == unwanted:\n            values.remove(value)\n    return"
        " values\n",
        "    return [value for value in values if value != unwanted]\n",
        {
            "de": "Die Funktion soll die Liste ohne einen bestimmten Wert liefern.",
            "en": "It should return the list without a certain value.",
        },
        {
            "de": (
                "Die Liste wird verändert, während sie durchlaufen wird, dabei wird der Nachbar eines entfernten Wertes"
                " übersprungen."
            ),
            "en": "The list changes while it is walked through, so the neighbour of a removed value is skipped.",
        },
        [(values, bad), (_numbers(draw, 0, 5, 5), 9), ([bad, bad, bad], bad)],
    )


def highest(draw: random.Random) -> Program:
    noun = draw.choice(("balances", "temperatures", "changes", "levels"))
    return Program(
        f"highest_{noun}",
        f"def highest_{noun}({noun}):\n    best = 0\n    for value in {noun}:\n        if value > best:\n           "
        " best = value\n    return best\n",
        "    best = 0\n",
        f"    best = {noun}[0]\n",
        {
            "de": "Die Funktion soll den größten Wert einer nicht leeren Liste liefern.",
            "en": "It should return the largest value of a list that is not empty.",
        },
        {
            "de": "Der Startwert 0 gewinnt, wenn alle Werte negativ sind.",
            "en": "The starting value 0 wins when all values are negative.",
        },
        [(_numbers(draw, -20, -1, draw.randint(3, 6)),), (_numbers(draw, -5, 20, 5),), ([draw.randint(-9, -1)],)],
    )


def price_text(draw: random.Random) -> Program:
    return Program(
        "price_text",
        'def price_text(cents):\n    return f"{cents // 100}.{cents % 100} EUR"\n',
        "{cents % 100} EUR",
        "{cents % 100:02d} EUR",
        {
            "de": "Die Funktion soll einen Betrag in Cent als Text in Euro schreiben.",
            "en": "It should write an amount in cents as text in euros.",
        },
        {"de": "Cent-Beträge unter 10 verlieren ihre führende Null.", "en": "Cents below 10 lose their leading zero."},
        [
            (draw.randint(1, 90) * 100 + draw.randint(1, 9),),
            (draw.randint(1, 90) * 100 + draw.randint(10, 99),),
            (draw.randint(1, 90) * 100,),
        ],
    )


def median(draw: random.Random) -> Program:
    noun = draw.choice(("ages", "times", "lengths"))
    return Program(
        "median",
        f"def median({noun}):\n    ordered = sorted({noun})\n    return ordered[len(ordered) // 2]\n",
        "    return ordered[len(ordered) // 2]\n",
        "    half = len(ordered) // 2\n    if len(ordered) % 2:\n        return ordered[half]\n    return (ordered[half"
        " - 1] + ordered[half]) / 2\n",
        {"de": "Die Funktion soll den Median liefern.", "en": "It should return the median."},
        {
            "de": "Bei gerader Anzahl ist der Median das Mittel der beiden mittleren Werte.",
            "en": "With an even count the median is the mean of the two values in the middle.",
        },
        [(draw.sample(range(1, 60), 4),), (draw.sample(range(1, 60), 5),), (draw.sample(range(1, 60), 6),)],
    )


def palindrome(draw: random.Random) -> Program:
    words = ("Anna", "Otto", "Lagerregal", "Reliefpfeiler", "Rentner", "Level", "Racecar", "Never odd or even")
    return Program(
        "is_palindrome",
        "def is_palindrome(text):\n    return text == text[::-1]\n",
        "    return text == text[::-1]\n",
        "    letters = [letter for letter in text.lower() if letter.isalpha()]\n    return letters == letters[::-1]\n",
        {
            "de": "Die Funktion soll Palindrome erkennen; Großschreibung und Leerzeichen zählen nicht.",
            "en": "It should recognise palindromes, whatever the case and spaces.",
        },
        {
            "de": "Der Vergleich achtet auf Großschreibung und Leerzeichen.",
            "en": "The comparison minds upper case and spaces.",
        },
        [(word,) for word in draw.sample(words, 3)] + [("Kolibri",)],
    )


def roman(draw: random.Random) -> Program:
    return Program(
        "roman",
        'def roman(number):\n    pairs = [(1000, "M"), (500, "D"), (100, "C"), (50, "L"), (10, "X"), (5, "V"), (1,'
        ' "I")]\n    text = ""\n    for value, letter in pairs:\n        while number >= value:\n            text +='
        " letter\n            number -= value\n    return text\n",
        '(1000, "M"), (500, "D"), (100, "C"), (50, "L"), (10, "X"), (5, "V"), (1, "I")',
        '(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"),\n             (50, "L"), (40,'
        ' "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")',
        {
            "de": "Die Funktion soll eine Zahl in römischen Ziffern schreiben.",
            "en": "It should write a number in Roman numerals.",
        },
        {
            "de": "Die Paare für 4, 9, 40, 90, 400 und 900 fehlen, deshalb stehen vier gleiche Zeichen nebeneinander.",
            "en": "The pairs for 4, 9, 40, 90, 400 and 900 are missing, so four equal letters stand side by side.",
        },
        [(draw.choice((4, 9, 14, 19, 24)),), (draw.randint(1, 300) * 10 + 9,), (draw.choice((1, 3, 8, 12, 37)),)],
    )


def merge_intervals(draw: random.Random) -> Program:
    start = draw.randint(0, 9)
    first, second, third = (start, start + 4), (start + 2, start + 7), (start + 11, start + 13)
    return Program(
        "merge",
        "def merge(intervals):\n    merged = []\n    for start, end in intervals:\n        if merged and start <="
        " merged[-1][1]:\n            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))\n        else:\n           "
        " merged.append((start, end))\n    return merged\n",
        "in intervals:",
        "in sorted(intervals):",
        {
            "de": "Die Funktion soll überlappende Zeitspannen zusammenfassen, die in beliebiger Reihenfolge kommen.",
            "en": "It should merge overlapping spans of time that come in any order.",
        },
        {
            "de": "Es wird nur mit der letzten Spanne verglichen, also müssten sie sortiert sein; das sind sie nicht.",
            "en": "Each span is compared only with the last one, so they would have to be sorted, and they are not.",
        },
        [([third, first, second],), ([first, second, third],), ([second, third, first],)],
    )


MAKERS: tuple[Callable[[random.Random], Program], ...] = (
    mean,
    moving_sum,
    leap_year,
    count_words,
    binary_search,
    remove_all,
    highest,
    price_text,
    median,
    palindrome,
    roman,
    merge_intervals,
)
