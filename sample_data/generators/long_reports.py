"""Reports on a weather station's or a shop's figures, month by month: the long conversations of the sample.

Each exchange hands over one month of daily figures; the answer works them out in its reasoning and writes the report.
The number of months decides how long a conversation gets.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from generators.common import CITIES, LANGUAGES, assistant, drawer, number

MONTH_COUNTS = (1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 6, 7, 8, 9, 10, 11, 12, 18)
MONTHS = {
    "de": [
        "Januar",
        "Februar",
        "März",
        "April",
        "Mai",
        "Juni",
        "Juli",
        "August",
        "September",
        "Oktober",
        "November",
        "Dezember",
    ],
    "en": [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
}
DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
MEAN_TENTHS = (5, 15, 50, 95, 140, 172, 190, 186, 145, 98, 50, 18)
WORDS: dict[str, dict[str, str]] = {
    "de": {
        "system": "Du schreibst Berichte aus Messwerten. Rechne sorgfältig und bleib bei den Zahlen.",
        "weather_ask": (
            "Hier sind die Werte der Wetterstation {city} für {month} (Tag: Höchstwert in °C, Regen in mm). Bitte den"
            " Monatsbericht."
        ),
        "shop_ask": (
            "Hier sind die Tagesumsätze unseres Ladens in {city} für {month} (Tag: Euro, Kunden). Bitte den"
            " Monatsbericht."
        ),
        "week": "Woche {week}, Tage {first} bis {last}: {sum}; bisher {total}.",
        "first": "Ich addiere die {what} in Wochenblöcken.",
        "sum": "Summe der {what}: {total}.",
        "again": "Zur Probe in Blöcken von zehn Tagen: {sum}.",
    },
    "en": {
        "system": "You write reports from measurements. Compute with care and keep to the figures.",
        "weather_ask": (
            "Here are the readings of the weather station {city} for {month} (day: high in °C, rain in mm). The monthly"
            " report, please."
        ),
        "shop_ask": (
            "Here are the daily takings of our shop in {city} for {month} (day: euros, customers). The monthly report,"
            " please."
        ),
        "week": "Week {week}, days {first} to {last}: {sum}; so far {total}.",
        "first": "I add up the {what} week by week.",
        "sum": "Sum of the {what}: {total}.",
        "again": "Again in blocks of ten days: {sum}.",
    },
}


class Station:
    """What is alike in both kinds: the words of a language, numbers, sums by weeks."""

    def __init__(self, draw: random.Random, language: str) -> None:
        self.draw, self.language = draw, language
        self.city = draw.choice(CITIES)
        self.words = WORDS[language]
        self.earlier: Fraction | None = None

    def n(self, value: int | Fraction, places: int = 1) -> str:
        return number(value, self.language, places)

    def choose(self, german: str, english: str) -> str:
        return german if self.language == "de" else english

    def quotient(self, total: int | Fraction, count: int, places: int = 1) -> str:
        """A division with its result, which is marked where it is rounded."""
        divided, result = Fraction(total) / count, self.n(Fraction(total) / count, places)
        relation = "=" if (divided * 10**places).denominator == 1 else "≈"
        return f"{self.n(total)} {self.choose(':', '/')} {self.n(count)} {relation} {result}"

    def sums(self, what: str, values: list[int], scale: int) -> list[str]:
        """Sum and mean of values in units of 1/scale: at once, by weeks, or by weeks and again by ten days."""
        total = self.n(Fraction(sum(values), scale))
        mean = f"{self.quotient(Fraction(sum(values), scale), len(values))}."
        patience = self.draw.random()
        if patience < 0.3:
            return [self.words["sum"].format(what=what, total=total), mean]
        lines = [*self._weeks(what, values, scale), mean]
        if patience > 0.75:
            tens = [self.n(Fraction(sum(values[first : first + 10]), scale)) for first in range(0, len(values), 10)]
            lines.append(
                self.words["again"].format(
                    sum=f"{' + '.join(f'({ten})' if ten[0] == '-' else ten for ten in tens)} = {total}"
                )
            )
        return lines

    def _weeks(self, what: str, values: list[int], scale: int) -> list[str]:
        lines, total = [self.words["first"].format(what=what)], 0
        for week, first in enumerate(range(0, len(values), 7), 1):
            block = values[first : first + 7]
            total += sum(block)
            added = " + ".join(
                self.n(Fraction(value, scale)) if value >= 0 else f"({self.n(Fraction(value, scale))})"
                for value in block
            )
            lines.append(
                self.words["week"].format(
                    week=week,
                    first=first + 1,
                    last=first + len(block),
                    sum=f"{added} = {self.n(Fraction(sum(block), scale))}",
                    total=self.n(Fraction(total, scale)),
                )
            )
        return lines

    def against_earlier(self, mean: Fraction, unit: str) -> str:
        """A sentence on the month before, by rounded means, so that the numbers in it add up."""
        rounded = Fraction(round(mean * 10), 10)
        earlier, self.earlier = self.earlier, rounded
        if earlier is None:
            return self.choose(
                "Ein Vormonat zum Vergleich liegt nicht vor.", "There is no month before to compare with."
            )
        if rounded == earlier:
            return self.choose(
                f"Das ist so viel wie im Vormonat ({self.n(earlier)} {unit}).",
                f"That is the same as the month before ({self.n(earlier)} {unit}).",
            )
        more = self.choose("mehr", "more") if rounded > earlier else self.choose("weniger", "less")
        gap = self.n(abs(rounded - earlier))
        return self.choose(
            f"Das sind {gap} {unit} {more} als im Vormonat ({self.n(earlier)} {unit}).",
            f"That is {gap} {unit} {more} than the month before ({self.n(earlier)} {unit}).",
        )


def weather(station: Station, month: int) -> tuple[str, str, str]:
    """Question, reasoning and report of one month."""
    draw, n, choose = station.draw, station.n, station.choose
    name = MONTHS[station.language][month % 12]
    highs = [MEAN_TENTHS[month % 12] + 40 + draw.randint(-70, 70) for _ in range(DAYS[month % 12])]
    rain = [draw.choice((0, 0, 0, draw.randint(1, 40), draw.randint(20, 210))) for _ in highs]
    table = "\n".join(
        f"{day}: {n(Fraction(high, 10))}; {n(Fraction(wet, 10))}"
        for day, (high, wet) in enumerate(zip(highs, rain, strict=True), 1)
    )
    warmest, coolest = max(highs), min(highs)
    warm_day, cool_day = highs.index(warmest) + 1, highs.index(coolest) + 1
    wet_days, dry = sum(wet > 0 for wet in rain), _longest_run([wet == 0 for wet in rain])
    heat, frost = sum(high >= 250 for high in highs), sum(high < 0 for high in highs)
    mean = Fraction(sum(highs), 10 * len(highs))
    reasoning = [
        *station.sums(choose("Höchstwerte", "highs"), highs, 10),
        *station.sums(choose("Regenmengen", "amounts of rain"), rain, 10),
        choose(
            f"Höchster Wert {n(Fraction(warmest, 10))} am {warm_day}., niedrigster {n(Fraction(coolest, 10))} am"
            f" {cool_day}.",
            f"Highest value {n(Fraction(warmest, 10))} on day {warm_day}, lowest {n(Fraction(coolest, 10))} on day"
            f" {cool_day}.",
        ),
        choose(
            f"Tage mit Regen: {wet_days}. Längste Folge trockener Tage: {dry}.",
            f"Days with rain: {wet_days}. Longest run of dry days: {dry}.",
        ),
        choose(
            f"Ab 25 Grad: {heat} Tage. Unter 0 Grad: {frost} Tage.",
            f"From 25 degrees: {heat} days. Below 0 degrees: {frost} days.",
        ),
    ]
    special = (
        choose(f" An {heat} Tagen wurden 25 °C erreicht.", f" 25 °C was reached on {heat} days.") if heat > 1 else ""
    )
    special += (
        choose(f" An {frost} Tagen blieb es unter dem Gefrierpunkt.", f" On {frost} days it stayed below freezing.")
        if frost > 1
        else ""
    )
    if station.language == "de":
        report = (
            f"## {name}\n\nDie Höchstwerte lagen im Mittel bei {n(mean)} °C. {station.against_earlier(mean, '°C')} Am"
            f" wärmsten war es am {warm_day}. mit {n(Fraction(warmest, 10))} °C, am kühlsten am {cool_day}. mit"
            f" {n(Fraction(coolest, 10))} °C.{special}\n\nEs fielen {n(Fraction(sum(rain), 10))} mm Regen an {wet_days}"
            f" von {len(rain)} Tagen; die längste trockene Zeit dauerte {dry} {'Tag' if dry == 1 else 'Tage'}. Der"
            f" nasseste Tag brachte {n(Fraction(max(rain), 10))} mm."
        )
    else:
        report = (
            f"## {name}\n\nThe highs averaged {n(mean)} °C. {station.against_earlier(mean, '°C')} The warmest day was"
            f" the {_ordinal(warm_day)} with {n(Fraction(warmest, 10))} °C, the coolest the {_ordinal(cool_day)} with"
            f" {n(Fraction(coolest, 10))} °C.{special}\n\n{n(Fraction(sum(rain), 10))} mm of rain fell on {wet_days} of"
            f" {len(rain)} days; the longest dry spell lasted {dry} {'day' if dry == 1 else 'days'}. The wettest day"
            f" brought {n(Fraction(max(rain), 10))} mm."
        )
    return (
        station.words["weather_ask"].format(city=station.city, month=name) + "\n\n" + table,
        "\n".join(reasoning),
        report,
    )


def shop(station: Station, month: int) -> tuple[str, str, str]:
    draw, n, choose = station.draw, station.n, station.choose
    name = MONTHS[station.language][month % 12]
    customers = [draw.randint(35, 140) for _ in range(DAYS[month % 12])]
    takings = [count * draw.randint(9, 16) for count in customers]
    table = "\n".join(
        f"{day}: {euros}; {count}" for day, (euros, count) in enumerate(zip(takings, customers, strict=True), 1)
    )
    best, worst = max(takings), min(takings)
    best_day, worst_day = takings.index(best) + 1, takings.index(worst) + 1
    mean, basket = Fraction(sum(takings), len(takings)), Fraction(sum(takings), sum(customers))
    strong = sum(euros >= 1200 for euros in takings)
    reasoning = [
        *station.sums(choose("Umsätze", "takings"), takings, 1),
        *station.sums(choose("Kundenzahlen", "customers"), customers, 1),
        choose(
            f"Je Kunde: {station.quotient(sum(takings), sum(customers), 2)} Euro.",
            f"Per customer: {station.quotient(sum(takings), sum(customers), 2)} euros.",
        ),
        choose(
            f"Bester Tag: der {best_day}. mit {n(best)}, schwächster: der {worst_day}. mit {n(worst)}. Mindestens 1200"
            f" Euro: {strong} Tage.",
            f"Best day: {best_day} with {n(best)}, weakest: {worst_day} with {n(worst)}. At least 1200 euros: {strong}"
            " days.",
        ),
    ]
    if station.language == "de":
        report = (
            f"## {name}\n\nDer Umsatz betrug {n(sum(takings))} Euro, im Mittel {n(mean)} Euro am Tag."
            f" {station.against_earlier(mean, 'Euro')} Der beste Tag war der {best_day}. mit {n(best)} Euro, der"
            f" schwächste der {worst_day}. mit {n(worst)} Euro.\n\nEs kamen {n(sum(customers))} Kunden, die im Mittel"
            f" {n(basket, 2)} Euro ausgaben. An {strong} von {len(takings)} Tagen wurden 1200 Euro erreicht."
        )
    else:
        report = (
            f"## {name}\n\nTakings were {n(sum(takings))} euros, {n(mean)} euros a day on average."
            f" {station.against_earlier(mean, 'euros')} The best day was the {_ordinal(best_day)} with {n(best)} euros,"
            f" the weakest the {_ordinal(worst_day)} with {n(worst)} euros.\n\n{n(sum(customers))} customers came and"
            f" spent {n(basket, 2)} euros on average. On {strong} of {len(takings)} days 1200 euros was reached."
        )
    return (
        station.words["shop_ask"].format(city=station.city, month=name) + "\n\n" + table,
        "\n".join(reasoning),
        report,
    )


def _longest_run(flags: list[bool]) -> int:
    longest = run = 0
    for flag in flags:
        run = run + 1 if flag else 0
        longest = max(longest, run)
    return longest


def _ordinal(day: int) -> str:
    ending = "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


def records() -> Iterator[dict[str, Any]]:
    for index, months in enumerate(MONTH_COUNTS * 2):
        draw, language = drawer("long_reports", index), LANGUAGES[index % 2]
        station = Station(draw, language)
        kind = weather if index // 2 % 2 == 0 else shop
        form = draw.choice(("reasoning", "reasoning_content", "thinking", "tags"))
        messages: list[dict[str, Any]] = [{"role": "system", "content": station.words["system"]}]
        for month in range(months):
            question, reasoning, report = kind(station, month)
            messages += [{"role": "user", "content": question}, assistant(report, reasoning, form)]
        yield {
            "id": f"long_reports-{index:04d}",
            "dataset": "long_reports",
            "domain": "writing",
            "difficulty": "medium" if months < 4 else "hard",
            "language": language,
            "messages": messages,
        }
