"""School maths, German and English: each answer comes with a trace that works it out, short or long as it happens."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from generators import maths_daily, maths_equations, maths_numbers, maths_proportions, maths_shopping, maths_systems
from generators.common import LANGUAGES, REASONING_FORMS, assistant, distinct

PER_DIFFICULTY = 120
OPENERS = {
    "de": ("Gegeben ist:", "Ich schreibe auf, was bekannt ist:", "Zuerst der Ansatz:", "Was ist gesucht?", "Also:"),
    "en": ("What is given:", "Let me set this up:", "First, the facts:", "What is asked?", "So:"),
}
FOLLOW_UPS = {
    "de": ("Danke! Kannst du das Ergebnis in einem Satz sagen?", "Und was ist die Antwort ganz kurz?"),
    "en": ("Thanks! Could you say the result in one sentence?", "And the short answer, please?"),
}


class Problem(NamedTuple):
    """`steps` lead to the answer; `checks` test it afterwards, as many of them as the trace has patience for."""

    question: str
    steps: list[str]
    checks: list[str]
    answer: str
    short: str


Maker = Callable[[random.Random, str], tuple[str, list[str], list[str], str, str]]
MAKERS: dict[str, tuple[Maker, ...]] = {
    "easy": (
        maths_shopping.change,
        maths_daily.arrival,
        maths_shopping.sharing,
        maths_shopping.discount,
        maths_daily.fence,
        maths_daily.weekday,
    ),
    "medium": (
        maths_equations.linear_equation,
        maths_equations.tickets,
        maths_proportions.recipe,
        maths_proportions.missing_score,
        maths_proportions.up_and_down,
        maths_equations.cyclists,
    ),
    "hard": (
        maths_numbers.euclid,
        maths_numbers.factorise,
        maths_systems.quadratic,
        maths_numbers.period,
        maths_systems.linear_system,
        maths_numbers.collatz,
    ),
}


def records() -> Iterator[dict[str, Any]]:
    """The difficulties one after the other, in each of them the kinds of problem in turn, in both languages."""
    made = distinct("school_maths", PER_DIFFICULTY * len(MAKERS), _record)
    for index, record in enumerate(made):
        yield {"id": f"school_maths-{index:04d}", **record}


def _record(place: int, draw: random.Random) -> dict[str, Any]:
    difficulty, makers = list(MAKERS.items())[place // PER_DIFFICULTY]
    language = LANGUAGES[place % 2]
    problem = Problem(*makers[place // 2 % len(makers)](draw, language))
    return {
        "dataset": "school_maths",
        "domain": "math",
        "difficulty": difficulty,
        "language": language,
        "messages": _messages(problem, draw, language),
    }


def _messages(problem: Problem, draw: random.Random, language: str) -> list[dict[str, Any]]:
    patience = draw.choice((0, 0, 1, 1, 2, len(problem.checks)))
    trace = [draw.choice(OPENERS[language]), *problem.steps, *problem.checks[:patience]]
    form = draw.choice(REASONING_FORMS)
    messages = [
        {"role": "user", "content": problem.question},
        assistant(problem.answer, " ".join(trace) if draw.random() < 0.3 else "\n".join(trace), form),
    ]
    if draw.random() < 0.2:
        messages += [{"role": "user", "content": draw.choice(FOLLOW_UPS[language])}, assistant(problem.short)]
    return messages
