"""Faulty functions of lists."""

from __future__ import annotations

import random

from generators.program import Program


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
