"""Faulty functions of a number or a text."""

from __future__ import annotations

import random

from generators.program import Program


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
