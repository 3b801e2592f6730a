"""Hard problems with several roots or unknowns."""

from __future__ import annotations

import random
from fractions import Fraction

from generators.common import Parts, number, signed


def quadratic(draw: random.Random, language: str) -> Parts:
    first, second = draw.sample([value for value in range(-12, 13) if value], 2)
    leading = draw.randint(1, 5)
    b, c = -leading * (first + second), leading * first * second
    p, q = -(first + second), first * second
    root = Fraction(abs(first - second), 2)
    low, high = sorted((first, second))
    equation = f"{leading if leading > 1 else ''}x² {signed(b, language)}x {signed(c, language)} = 0"
    half = Fraction(-p, 2)

    def n(value: Fraction | int) -> str:
        return number(value, language)

    pairs = [
        f"{d} · {q // d} = {q}, Summe {d + q // d}"
        for d in range(-abs(q), abs(q) + 1)
        if d and q % d == 0 and d <= q // d
    ]
    if language == "de":
        return (
            f"Löse die quadratische Gleichung {equation}.",
            [
                f"Normalform, geteilt durch {leading}: x² {signed(p, language)}x {signed(q, language)} = 0.",
                f"p = {p}, q = {q}. Die halbe Gegenzahl von p ist {n(half)}.",
                (
                    f"Unter der Wurzel: ({n(half)})² - ({q}) = {n(half * half)} {signed(-q, language)} ="
                    f" {n(half * half - q)}."
                ),
                f"Die Wurzel daraus ist {n(root)}.",
                f"x = {n(half)} ± {n(root)}, also {low} oder {high}.",
            ],
            [
                f"Vieta: Summe {low} + ({high}) = {low + high} = -p, Produkt {low} · ({high}) = {q} = q.",
                (
                    f"Durch Probieren aller Zerlegungen von {q}: {'; '.join(pairs)}. Die Summe {first + second} gehört"
                    f" zu {low} und {high}."
                ),
                (
                    f"Einsetzen von {low}: {leading * low * low} {signed(b * low, language)} {signed(c, language)} = 0."
                    f" Einsetzen von {high}: {leading * high * high} {signed(b * high, language)} {signed(c, language)}"
                    " = 0."
                ),
            ],
            f"Die Lösungen sind **x = {low}** und **x = {high}**.",
            f"{low} und {high}.",
        )
    return (
        f"Solve the quadratic equation {equation}.",
        [
            f"Divided by {leading}: x² {signed(p, language)}x {signed(q, language)} = 0.",
            f"Half of the negated coefficient of x is {n(half)}.",
            f"Under the root: ({n(half)})² - ({q}) = {n(half * half)} {signed(-q, language)} = {n(half * half - q)}.",
            f"Its root is {n(root)}.",
            f"x = {n(half)} ± {n(root)}, so {low} or {high}.",
        ],
        [
            f"Vieta: the sum is {low} + ({high}) = {low + high}, the product {low} x ({high}) = {q}.",
            (
                f"By trying all factorings of {q}: {'; '.join(pairs).replace(' · ', ' x ').replace('Summe', 'sum')}. "
                f"The sum {first + second} belongs to {low} and {high}."
            ),
            (
                f"Put in {low}: {leading * low * low} {signed(b * low, language)} {signed(c, language)} = 0. "
                f"Put in {high}: {leading * high * high} {signed(b * high, language)} {signed(c, language)} = 0."
            ),
        ],
        f"The solutions are **x = {low}** and **x = {high}**.",
        f"{low} and {high}.",
    )


def linear_system(draw: random.Random, language: str) -> Parts:
    while True:
        solution = [draw.randint(-6, 6) for _ in range(3)]
        rows = [[draw.randint(-5, 6) for _ in range(3)] for _ in range(3)]
        table = [[Fraction(value) for value in row] + [Fraction(_dot(row, solution))] for row in rows]
        lines = _eliminate(table, language)
        if lines is not None:
            break
    system = "\n".join(_equation(row, Fraction(_dot(row, solution)), language) for row in rows)
    x, y, z = solution
    checks = [
        " ".join(
            f"{signed(value * solved, language)}" for value, solved in zip(row, solution, strict=True)
        ).removeprefix("+ ")
        + f" = {_dot(row, solution)}"
        for row in rows
    ]
    if language == "de":
        return (
            f"Löse das Gleichungssystem:\n{system}",
            ["Gauß-Verfahren, die Gleichungen heißen I, II und III.", *lines, f"Also x = {x}, y = {y}, z = {z}."],
            ["Probe in allen drei Gleichungen:", *checks],
            f"**x = {x}, y = {y}, z = {z}**",
            f"({x}, {y}, {z})",
        )
    return (
        f"Solve the system of equations:\n{system}",
        ["Gaussian elimination; call the equations I, II and III.", *lines, f"So x = {x}, y = {y}, z = {z}."],
        ["Check in all three equations:", *checks],
        f"**x = {x}, y = {y}, z = {z}**",
        f"({x}, {y}, {z})",
    )


def _dot(row: list[int], solution: list[int]) -> int:
    return sum(value * solved for value, solved in zip(row, solution, strict=True))


def _equation(row: list[int] | list[Fraction], right: Fraction, language: str) -> str:
    terms = [
        f"{'-' if value < 0 else '+'} {'' if abs(value) == 1 else _plain(abs(value))}{name}"
        for value, name in zip(row, "xyz", strict=False)
        if value
    ]
    left = " ".join(terms).removeprefix("+ ") or "0"
    left = "-" + left.removeprefix("- ") if left.startswith("- ") else left
    return f"{left} = {_plain(right)}"


def _plain(value: Fraction | int) -> str:
    value = Fraction(value)
    return str(value) if value.denominator == 1 else f"({value})"


def _difference(right: Fraction, known: Fraction) -> str:
    """`right - known = …`, or `right` alone where there is nothing to subtract."""
    if known == 0:
        return _plain(right)
    subtracted = f"({known})" if known < 0 or known.denominator > 1 else str(known)
    return f"{_plain(right)} - {subtracted} = {_plain(right - known)}"


def _eliminate(table: list[list[Fraction]], language: str) -> list[str] | None:
    """Solve by rows, with a line for each step; None where a pivot is 0 or the fractions get ugly."""
    lines, names = [], ("I", "II", "III")
    for pivot in range(3):
        if table[pivot][pivot] == 0:
            return None
        for row in range(pivot + 1, 3):
            factor = table[row][pivot] / table[pivot][pivot]
            if factor.denominator > 12:
                return None
            if factor:
                table[row] = [value - factor * above for value, above in zip(table[row], table[pivot], strict=True)]
                lines.append(
                    f"{names[row]} - ({factor}) · {names[pivot]}: {_equation(table[row][:3], table[row][3], language)}"
                )
    values: dict[int, Fraction] = {}
    for pivot in (2, 1, 0):
        known = sum((table[pivot][other] * value for other, value in values.items()), Fraction(0))
        right = table[pivot][3] - known
        values[pivot] = right / table[pivot][pivot]
        name = "xyz"[pivot]
        lines.append(
            f"{names[pivot]}: {_plain(table[pivot][pivot])}{name} = {_difference(table[pivot][3], known)}, {name} ="
            f" {values[pivot]}"
        )
    return [line if language == "de" else line.replace(" · ", " x ") for line in lines]
