"""Verdicts on answers: cases labelled by hand, and numbers written by a grammar in four languages."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from sft_toolkit.conversation import ToolCall
from sft_toolkit.errors import UsageError
from sft_toolkit.json_text import decode
from sft_toolkit.verifiers.number import NumberVerifier
from sft_toolkit.verifiers.registry import find_verifier
from sft_toolkit.verifiers.verdicts import NO_ANSWER, RIGHT, UNDECIDED, WRONG, Attempt
from tests.conftest import CASES

GIVEN = [decode(line) for line in (CASES / "choosing" / "numbers.jsonl").read_text().splitlines()]
OWN = [decode(line) for line in (CASES / "choosing" / "number_answers.jsonl").read_text().splitlines()]
TREES = dict(zip("ABCD", ("die Eiche", "die Linde", "die Buche", "der Ahorn"), strict=True))


def attempt(case: dict[str, Any]) -> Attempt:
    calls = tuple(ToolCall(call["name"], call["arguments"]) for call in case.get("tool_calls", ()))
    options = dict(zip("ABCD", case.get("options", ()), strict=False))
    return Attempt(case["answer"], case["key"], case["language"], options, calls, tuple(case.get("tools", ())))


@pytest.mark.parametrize("case", GIVEN, ids=lambda case: case["id"])
def test_the_small_set_gets_its_verdicts(case: dict[str, Any]) -> None:
    found = find_verifier(case["verifier"]).verify(attempt(case)).verdict
    assert found in (case["expect"], *case["also"])


@pytest.mark.parametrize("case", OWN, ids=lambda case: f"{case['language']}: {case['answer']} for {case['key']}")
def test_a_number_is_read_as_its_sentence_gives_it(case: dict[str, Any]) -> None:
    assert NumberVerifier().verify(attempt(case)).verdict == case["expect"]


GROUPS = {"de": ".", "en": ",", "fr": "\u202f", "de-CH": "'"}
POINTS = {"de": ",", "en": ".", "fr": ",", "de-CH": "."}
FRAMES = {
    "de": ("Das ergibt {}.", "Also sind es **{}**.", "Antwort: {}", "Zu zahlen sind {} €.", "\\boxed{{{}}}", "x = {}"),
    "en": ("The total is {}.", "So we get **{}**.", "Answer: {}", "It costs ${}.", "\\boxed{{{}}}", "#### {}"),
    "fr": (
        "Le total est de {}.",
        "Il reste donc **{}**.",
        "Réponse : {}",
        "Cela coûte {} €.",
        "\\boxed{{{}}}",
        "x = {}",
    ),
    "de-CH": ("Das ergibt {}.", "Also sind es **{}**.", "Antwort: {}", "Das kostet CHF {}.", "\\boxed{{{}}}", "x = {}"),
}


def writings(count: int) -> list[tuple[str, str, Fraction]]:
    """(language, answer, value), from a grammar: sign, groups or none, decimals, frame."""
    draw = random.Random(19)
    found = []
    for index in range(count):
        language = list(GROUPS)[index % 4]
        whole = draw.choice([draw.randint(0, 20), draw.randint(100, 9999), draw.randint(10_000, 99_999_999)])
        places = draw.choice([0, 0, 1, 2, 4])
        decimals = f"{draw.randint(0, 10**places - 1):0{places}d}" if places else ""
        digits = f"{whole:,}".replace(",", GROUPS[language]) if draw.random() < 0.6 else str(whole)
        sign = draw.choice(["", "", "", "-", "−"])
        value = Fraction(f"{whole}.{decimals or 0}") * (-1 if sign else 1)
        text = sign + digits + (POINTS[language] + decimals if decimals else "")
        found.append((language, draw.choice(FRAMES[language]).format(text), value))
    return found


def test_no_number_of_a_thousand_in_four_writings_is_accepted_wrongly_and_next_to_none_refused() -> None:
    verifier, refused = NumberVerifier(), []
    for language, answer, value in writings(1000):
        key = f"{value.numerator}/{value.denominator}"
        if verifier.verify(Attempt(answer, key, language)).verdict != RIGHT:
            refused.append((language, answer, key))
        for other in (value * 1000, value / 1000, value / 100, -value, value + 1, value / 10):
            if other != value:
                wrong = verifier.verify(Attempt(answer, f"{other.numerator}/{other.denominator}", language))
                assert wrong.verdict != RIGHT, (language, answer, other)
    assert refused == []


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        *((text, RIGHT) for text in ("B", "b", "(b)", "B)", "**B**", "Antwort: B", "Die richtige Antwort ist B.")),
        *((text, RIGHT) for text in ("The answer is (B).", "B: die Linde", "A scheidet aus. C auch. Also B.", "Linde")),
        *((text, RIGHT) for text in ("Es ist die Linde, nicht die Eiche.", "A dog told me B.", "I think it is B.")),
        *((text, RIGHT) for text in (r"\boxed{\text{B}}", "Réponse : B", "A ist falsch, B ist richtig.")),
        *((text, UNDECIDED) for text in ("B) die Eiche", "Die Eiche oder die Linde.", "A, B", "B und C")),
        *((text, WRONG) for text in ("C", "A is correct.", "Nicht B, sondern D.")),
        ("Keine Ahnung", NO_ANSWER),
    ],
)
def test_a_choice_is_a_letter_or_the_text_of_one_option(answer: str, verdict: str) -> None:
    assert find_verifier("choice").verify(Attempt(answer, "B", "de", TREES)).verdict == verdict
    assert find_verifier("choice").verify(Attempt(answer, "Linde", "de", TREES)).verdict == verdict


@pytest.mark.parametrize(
    ("answer", "key", "verdict"),
    [
        ("**Specht**.", "Specht", RIGHT),
        ("Das ist der Specht.", "Specht", RIGHT),
        ("STRASSE", "Straße", RIGHT),
        ("\\boxed{Paris}", "Paris", RIGHT),
        ("Specht oder Meise", "Specht", UNDECIDED),
        ("Es war nicht der Specht.", "Specht", UNDECIDED),
        ("Der Fluss ist länger als der Rhein.", "Rhein", UNDECIDED),
        ("Koeln", "Köln", UNDECIDED),
        ("Kassel", "Köln", WRONG),
        ("", "Köln", NO_ANSWER),
    ],
)
def test_a_text_is_the_answer_or_named_as_that(answer: str, key: str, verdict: str) -> None:
    assert find_verifier("text").verify(Attempt(answer, key)).verdict == verdict


@pytest.mark.parametrize(
    ("answer", "key", "verdict"),
    [
        ('Erst {"a":1}, dann {"a":2}', {"a": 2}, RIGHT),
        ("```json\n[1,2]\n```", [2, 1], WRONG),
        ('{"a":12345678901234567890123}', {"a": 12345678901234567890123}, RIGHT),
        ('{"a":12345678901234567890124}', {"a": 12345678901234567890123}, WRONG),
        ('{"a":null}', {}, WRONG),
        ('{"a":true}', {"a": 1}, WRONG),
        ('{"a":1', {"a": 1}, NO_ANSWER),
    ],
)
def test_json_compares_as_values(answer: str, key: Any, verdict: str) -> None:
    assert find_verifier("json").verify(Attempt(answer, key)).verdict == verdict


@pytest.mark.parametrize(
    ("language", "answer", "key", "verdict"),
    [
        ("de", r"\boxed{16{,}20}", "16.2", RIGHT),
        ("de", r"$(x+1)^2$", r"$x^2+2x+1$", RIGHT),
        ("de", r"\boxed{\frac{\sqrt{2}}{2}}", r"\frac{1}{\sqrt{2}}", RIGHT),
        ("de", r"\boxed{3\pi}", r"2\pi", WRONG),
        ("de", r"\boxed{1{,}5x}", "1,5x", RIGHT),
        ("de", "1.620,50", 1620.5, RIGHT),
    ],
)
def test_formulas_are_compared_after_their_numbers_were_read(
    language: str, answer: str, key: Any, verdict: str
) -> None:
    pytest.importorskip("math_verify")
    assert find_verifier("math").verify(Attempt(answer, key, language)).verdict == verdict


@pytest.mark.parametrize(
    ("command", "verdict", "why"),
    [
        ("echo right", RIGHT, None),
        ("sleep 30", UNDECIDED, "timeout"),
        ("false", UNDECIDED, "command_failed"),
        ("true", UNDECIDED, "command_said_nothing"),
        ("echo 42", UNDECIDED, "command_said_no_verdict"),
    ],
)
def test_a_command_that_hangs_fails_or_says_nothing_leaves_the_attempt_undecided(
    command: str, verdict: str, why: str | None
) -> None:
    found = find_verifier(f"command:{command}", seconds=0.3).verify(Attempt("a", "a"))
    assert (found.verdict, found.why) == (verdict, why)


def test_a_command_reads_the_attempt_and_its_memory_is_bounded() -> None:
    program = "import json,sys; d=json.load(sys.stdin); x=bytearray(int(d['key'])); print('right')"
    verifier = find_verifier(f'command:python3 -c "{program}"', megabytes=400)
    assert verifier.verify(Attempt("a", 1 << 20)).verdict == RIGHT
    assert verifier.verify(Attempt("a", 1 << 30)).why == "command_failed"


def test_an_unknown_verifier_is_a_usage_error_that_lists_them() -> None:
    with pytest.raises(UsageError, match="unknown") as error:
        find_verifier("numbr")
    assert "choice" in error.value.hint
