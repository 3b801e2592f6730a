"""Hard problems about whole numbers; their traces are as long as the numbers make them."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise
from math import gcd, isqrt

from generators.common import Parts


def euclid(draw: random.Random, language: str) -> Parts:
    common = draw.randint(2, 40)
    a, b = sorted((common * draw.randint(20, 400), common * draw.randint(20, 400)), reverse=True)
    divisions = []
    high, low = a, b
    while low:
        divisions.append((high, low, high // low, high % low))
        high, low = low, high % low
    divisor = high
    x, y, lines = _bezout(divisions)
    steps = [f"{high} = {quotient} · {low} + {rest}" for high, low, quotient, rest in divisions]
    multiple = a * b // divisor
    if language == "de":
        return (
            (
                f"Bestimme den größten gemeinsamen Teiler und das kleinste gemeinsame Vielfache von {a} und {b}. "
                "Schreibe den ggT auch als Vielfachsumme der beiden Zahlen."
            ),
            [
                "Euklidischer Algorithmus:",
                *steps,
                f"Der letzte Rest vor 0 ist {divisor}, also ggT = {divisor}.",
                f"kgV = {a} · {b} : {divisor} = {a * b} : {divisor} = {multiple}.",
                "Rückwärts eingesetzt:",
                *lines,
            ],
            [
                f"Probe: {a} · ({x}) + {b} · ({y}) = {a * x} + ({b * y}) = {divisor}.",
                (
                    f"{a} : {divisor} = {a // divisor} und {b} : {divisor} = {b // divisor}; diese beiden sind"
                    " teilerfremd."
                ),
                f"{multiple} : {a} = {multiple // a} und {multiple} : {b} = {multiple // b} gehen auf.",
            ],
            f"ggT({a}, {b}) = **{divisor}**, kgV = **{multiple}**, und {divisor} = {a} · ({x}) + {b} · ({y}).",
            f"ggT {divisor}, kgV {multiple}.",
        )
    return (
        (
            f"Find the greatest common divisor and the least common multiple of {a} and {b}, and write the gcd as a sum"
            " of multiples of the two."
        ),
        [
            "Euclid's algorithm:",
            *(step.replace(" · ", " x ") for step in steps),
            f"The last remainder before 0 is {divisor}, so gcd = {divisor}.",
            f"lcm = {a} x {b} / {divisor} = {a * b} / {divisor} = {multiple}.",
            "Backwards:",
            *(line.replace(" · ", " x ") for line in lines),
        ],
        [
            f"Check: {a} x ({x}) + {b} x ({y}) = {a * x} + ({b * y}) = {divisor}.",
            f"{a} / {divisor} = {a // divisor} and {b} / {divisor} = {b // divisor}; these two share no factor.",
            f"{multiple} / {a} = {multiple // a} and {multiple} / {b} = {multiple // b} leave nothing.",
        ],
        f"gcd({a}, {b}) = **{divisor}**, lcm = **{multiple}**, and {divisor} = {a} x ({x}) + {b} x ({y}).",
        f"gcd {divisor}, lcm {multiple}.",
    )


def _bezout(divisions: list[tuple[int, int, int, int]]) -> tuple[int, int, list[str]]:
    """Coefficients of the first pair that give the gcd, and the lines that lead to them."""
    x, y, lines = 0, 1, []
    for high, low, quotient, _ in reversed(divisions[:-1]):
        x, y = y, x - quotient * y
        lines.append(f"{high * x + low * y} = {high} · ({x}) + {low} · ({y})")
    return x, y, lines


def factorise(draw: random.Random, language: str) -> Parts:
    n = draw.randint(600, 14_000)
    rest, factors, tried = n, [], []
    divisor = 2
    while divisor * divisor <= rest:
        if rest % divisor:
            tried.append(f"{rest} : {divisor} = {rest // divisor} Rest {rest % divisor}.")
            divisor += 1 if divisor == 2 else 2
            while any(divisor % small == 0 for small in range(3, isqrt(divisor) + 1, 2)):
                divisor += 2
        else:
            tried.append(f"{rest} : {divisor} = {rest // divisor}.")
            factors.append(divisor)
            rest //= divisor
    factors.append(rest)
    product = " · ".join(map(str, factors))
    count = 1
    for prime in set(factors):
        count *= factors.count(prime) + 1
    divisors = [str(value) for value in range(1, n + 1) if n % value == 0]
    stop = f"{divisor}² = {divisor * divisor}"
    if language == "de":
        end = f"{stop} ist größer als {rest}, also ist {rest} prim."
        prime = f"{n} ist eine Primzahl." if len(factors) == 1 else f"{n} = {product}."
        return (
            f"Zerlege {n} in Primfaktoren. Wie viele Teiler hat die Zahl?",
            [
                "Ich teile durch eine Primzahl nach der anderen.",
                *tried,
                end,
                prime,
                f"Aus den Exponenten, je um 1 erhöht: {count} Teiler.",
            ],
            [f"Probe: {product} = {n}.", f"Die Teiler: {', '.join(divisors)}. Das sind {len(divisors)}."],
            (
                f"{'**' + str(n) + '** ist prim' if len(factors) == 1 else f'{n} = **{product}**'}; die Zahl hat"
                f" **{count}** Teiler."
            ),
            f"{product}; {count} Teiler.",
        )
    product = product.replace(" · ", " x ")
    end = f"{stop} is more than {rest}, so {rest} is prime."
    prime = f"{n} is a prime number." if len(factors) == 1 else f"{n} = {product}."
    return (
        f"Factorise {n} into primes. How many divisors does it have?",
        [
            "I divide by one prime after another.",
            *(line.replace(" : ", " / ").replace("Rest", "remainder") for line in tried),
            end,
            prime,
            f"From the exponents, each raised by 1: {count} divisors.",
        ],
        [f"Check: {product} = {n}.", f"The divisors: {', '.join(divisors)}. That makes {len(divisors)}."],
        f"{'**' + str(n) + '** is prime' if len(factors) == 1 else f'{n} = **{product}**'}, with **{count}** divisors.",
        f"{product}; {count} divisors.",
    )


def period(draw: random.Random, language: str) -> Parts:
    b = draw.choice(
        [value for value in range(7, 75) if (gcd(value, 10) == 1 and value % 3) or value in (21, 27, 33, 37, 39)]
    )
    a = draw.choice([value for value in range(1, b) if gcd(value, b) == 1])
    rest, digits, steps = a, "", []
    while not digits or rest != a:
        digit, after = divmod(10 * rest, b)
        steps.append(f"10 · {rest} = {10 * rest} = {digit} · {b} + {after}")
        digits += str(digit)
        rest = after
    mark = "," if language == "de" else "."
    nines = 10 ** len(digits) - 1
    if language == "de":
        return (
            f"Schreibe {a}/{b} als Dezimalbruch. Wie lang ist die Periode?",
            [
                f"Schriftlich: {a} : {b} ist 0 Rest {a}. Dann immer mal 10:",
                *(f"{step}, Ziffer {step.split(' = ')[2].split()[0]}." for step in steps),
                f"Der Rest {a} kehrt nach {len(digits)} Schritten wieder, ab da wiederholt sich alles.",
            ],
            [
                f"Mehr als {b - 1} Schritte können es nicht sein, denn nur die Reste 1 bis {b - 1} kommen in Frage.",
                f"Probe: {digits.lstrip('0')} : {nines} gekürzt ergibt {Fraction(int(digits), nines)}.",
            ],
            f"{a}/{b} = 0{mark}({digits}) mit der Periodenlänge **{len(digits)}**.",
            f"Periodenlänge {len(digits)}.",
        )
    return (
        f"Write {a}/{b} as a decimal. How long is the period?",
        [
            f"Long division: {a} / {b} is 0 remainder {a}. Then times 10 each time:",
            *(f"{step.replace(' · ', ' x ')}, digit {step.split(' = ')[2].split()[0]}." for step in steps),
            f"The remainder {a} returns after {len(digits)} steps; from there on everything repeats.",
        ],
        [
            f"There cannot be more than {b - 1} steps, since only the remainders 1 to {b - 1} are possible.",
            f"Check: {digits.lstrip('0')} / {nines} in lowest terms is {Fraction(int(digits), nines)}.",
        ],
        f"{a}/{b} = 0{mark}({digits}), with a period of length **{len(digits)}**.",
        f"Length {len(digits)}.",
    )


def collatz(draw: random.Random, language: str) -> Parts:
    start = draw.choice([*range(7, 26), 27, 31, 33, 41, 43, 47, 54, 55, 62, 63, 71, 73, 78, 82, 91, 94, 95, 97])
    walk = [start]
    while walk[-1] != 1:
        walk.append(walk[-1] // 2 if walk[-1] % 2 == 0 else 3 * walk[-1] + 1)
    moves = [
        f"{here} {'ist gerade' if here % 2 == 0 else 'ist ungerade'}:"
        f" {f'{here} : 2' if here % 2 == 0 else f'3 · {here} + 1'} = {there}."
        for here, there in pairwise(walk)
    ]
    odd = sum(here % 2 for here in walk[:-1])
    steps, top = len(walk) - 1, max(walk)
    if language == "de":
        return (
            (
                f"Beginne mit {start}. Ist die Zahl gerade, halbiere sie; ist sie ungerade, nimm sie mal 3 und addiere"
                " 1. Wie viele Schritte dauert es bis zur 1, und welche ist die größte Zahl unterwegs?"
            ),
            [*moves, f"Das waren {steps} Schritte, die größte Zahl war {top}."],
            [
                f"Nachgezählt: {odd} ungerade und {steps - odd} gerade Zahlen vor der 1, zusammen {steps}.",
                f"Die ganze Folge noch einmal: {', '.join(map(str, walk))}.",
            ],
            f"Es dauert **{steps} Schritte**; die größte Zahl ist **{top}**.",
            f"{steps} Schritte, Höchststand {top}.",
        )
    moves = [
        move.replace("ist gerade", "is even")
        .replace("ist ungerade", "is odd")
        .replace(" : 2", " / 2")
        .replace("3 · ", "3 x ")
        for move in moves
    ]
    return (
        (
            f"Start with {start}. Halve the number if it is even; if it is odd, take three times it plus 1. How many"
            " steps does it take to reach 1, and what is the largest number on the way?"
        ),
        [*moves, f"That made {steps} steps, and the largest number was {top}."],
        [
            f"Counting again: {odd} odd and {steps - odd} even numbers before the 1, together {steps}.",
            f"The whole sequence once more: {', '.join(map(str, walk))}.",
        ],
        f"It takes **{steps} steps**; the largest number is **{top}**.",
        f"{steps} steps, highest {top}.",
    )
