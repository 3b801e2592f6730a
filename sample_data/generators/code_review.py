"""Reviews of small Python functions, German and English, in ShareGPT form; the values come from running the code."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from generators import programs
from generators.common import LANGUAGES, distinct
from generators.program import Program

COUNT = 192
DIFFICULTIES = ("medium", "medium", "medium", "easy", "hard")
WORDS = {
    "de": {
        "ask": (
            "Schau bitte einmal über diese Funktion. {task}",
            "Kannst du diesen Code prüfen? {task}",
            "Irgendetwas stimmt hier nicht. {task}",
        ),
        "read": "Es geht um {name}. {task}",
        "case": "{call} gibt {got}",
        "right": "richtig wäre {want}",
        "fine": "das stimmt",
        "cause": "Woran liegt es? {fault}",
        "repair": "Ich ändere die Stelle und rechne alles noch einmal durch:",
        "other": (
            "Gibt es noch etwas anderes? Die Namen sind verständlich, die Funktion verändert sonst nichts, ein Test"
            " fehlt."
        ),
        "found": "{fault} Zum Beispiel gibt `{call}` {got} statt {want}.",
        "better": "So ist es richtig:",
        "test": "Ein Test dazu:",
        "more": ("Danke. Gibt es einen Fall, der schon vorher richtig war?", "Ja: `{call}` gab schon vorher {want}."),
    },
    "en": {
        "ask": (
            "Please look over this function. {task}",
            "Could you review this code? {task}",
            "Something is off here. {task}",
        ),
        "read": "The function is called {name}. {task}",
        "case": "{call} gives {got}",
        "right": "it should be {want}",
        "fine": "which is right",
        "cause": "Why? {fault}",
        "repair": "I change that place and go through everything again:",
        "other": "Anything else? The names are clear, nothing else is changed by the function, and a test is missing.",
        "found": "{fault} For example, `{call}` gives {got} instead of {want}.",
        "better": "This is right:",
        "test": "A test for it:",
        "more": ("Thanks. Is there a case that was right before?", "Yes: `{call}` gave {want} before, too."),
    },
}


def records() -> Iterator[dict[str, Any]]:
    for index, record in enumerate(distinct("code_review", COUNT, _record)):
        yield {"id": f"code_review-{index:04d}", **record}


def _record(place: int, draw: random.Random) -> dict[str, Any]:
    program = programs.MAKERS[place % len(programs.MAKERS)](draw)
    language = LANGUAGES[place // len(programs.MAKERS) % 2]
    return {
        "dataset": "code_review",
        "domain": "code",
        "difficulty": DIFFICULTIES[place % len(DIFFICULTIES)],
        "conversations": _turns(program, draw, language),
        "language": language,
    }


def _turns(program: Program, draw: random.Random, language: str) -> list[dict[str, str]]:
    words = WORDS[language]
    asked = draw.choice(words["ask"]).format(task=program.task[language])
    reasoning = "\n".join(_reasoning(program, draw, language))
    thought = f"<think>\n{reasoning}\n</think>\n\n" if draw.random() < 0.92 else ""
    turns = [
        {"from": "human", "value": f"{asked}\n\n```python\n{program.source}```"},
        {"from": "gpt", "value": thought + _review(program, draw, language)},
    ]
    right = [case for case in program.cases if case not in program.failing()]
    if right and draw.random() < 0.3:
        case = draw.choice(right)
        question, answer = words["more"]
        filled = answer.format(call=program.call(case), want=program.outcome(program.fixed, case))
        turns += [{"from": "human", "value": question}, {"from": "gpt", "value": filled}]
    return turns


def _reasoning(program: Program, draw: random.Random, language: str) -> list[str]:
    """From the first failing case to every case before and after the repair, by how much patience was drawn."""
    words, patience = WORDS[language], draw.choice((1, 2, 2, 3, 4))
    cases = program.failing()[:1] if patience == 1 else program.cases
    lines = [words["read"].format(name=program.name, task=program.task[language])]
    for case in cases:
        got, want = program.outcome(program.source, case), program.outcome(program.fixed, case)
        verdict = words["fine"] if got == want else words["right"].format(want=want)
        lines.append(f"{words['case'].format(call=program.call(case), got=got)}; {verdict}.")
    lines.append(words["cause"].format(fault=program.fault[language]))
    if patience >= 3:
        lines.append(words["repair"])
        lines += [
            f"- {words['case'].format(call=program.call(case), got=program.outcome(program.fixed, case))}."
            for case in program.cases
        ]
    if patience == 4:
        lines.append(words["other"])
    return lines


def _review(program: Program, draw: random.Random, language: str) -> str:
    words, case = WORDS[language], draw.choice(program.failing())
    got, want = program.outcome(program.source, case), program.outcome(program.fixed, case)
    found = words["found"].format(fault=program.fault[language], call=program.call(case), got=got, want=want)
    parts = [found, words["better"], f"```python\n{program.fixed}```"]
    if draw.random() < 0.5:
        assertion = (
            f"assert {program.call(case)} is {want}"
            if want in ("None", "True", "False")
            else f"assert {program.call(case)} == {want}"
        )
        parts += [words["test"], f"```python\n{assertion}\n```"]
    return "\n\n".join(parts)
