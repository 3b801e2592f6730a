"""Loops in text: the shared cases, a labelled set with hard negatives, what a loop reports, and the time it takes."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.labelers.periods import MAX_PERIOD
from sft_toolkit.labelers.repetition import find_loop

CASES = Path(__file__).parents[1] / "cases" / "choosing"
START = "Gesucht ist die Zahl der Kisten. Eine Kiste ist 40 cm lang und 30 cm breit. "


def rows(name):
    return [json.loads(line) for line in (CASES / name).read_text(encoding="utf-8").splitlines()]


def written_out(parts):
    """The text of a labelled row: each part so many times, `{n}` counting from 1."""
    return "".join(part.replace("{n}", str(n)) for part, times in parts for n in range(1, times + 1))


@pytest.mark.parametrize("case", rows("loops.jsonl"), ids=lambda case: f"{case['id']}-{case['kind']}")
def test_a_case_is_a_loop_or_none(case):
    found = "none" if find_loop(case["reasoning"]) is None else "loop"
    assert case["expect"] in (found, "either")


@pytest.mark.parametrize(("half", "loops", "others"), [("development", 61, 96), ("test", 30, 33)])
def test_precision_and_recall_on_the_labelled_set(half, loops, others):
    labelled = [row for row in rows("loops_labelled.jsonl") if row["half"] == half]
    verdicts = [(find_loop(written_out(row["parts"])) is not None, row["expect"] == "loop") for row in labelled]
    hits = sum(found and wanted for found, wanted in verdicts)
    assert (sum(wanted for _, wanted in verdicts), sum(not wanted for _, wanted in verdicts)) == (loops, others)
    assert hits / sum(found for found, _ in verdicts) >= 0.98
    assert hits / loops >= 0.9


def test_a_loop_says_where_it_stands_its_period_and_how_often_it_repeats():
    text = START + "Das prüfe ich noch einmal. " * 20 + "Die Antwort ist 30."
    loop = find_loop(text)
    assert text[loop.start : loop.end] == ("Das prüfe ich noch einmal. " * 20).strip()
    assert (loop.period, loop.repeats) == (5, 20)
    assert loop.share == round((loop.end - loop.start) / len(text), 4)


def test_the_period_is_the_shortest_one():
    assert find_loop("ja nein " * 64).period == 2
    assert find_loop("ja ja nein " * 40).period == 3


def test_of_two_loops_the_longer_one_is_reported():
    text = "Das stimmt so nicht. " * 12 + START + "Ich rechne noch einmal nach. " * 30
    assert find_loop(text).repeats == 30


def test_a_long_thought_that_returns_four_times_is_a_loop_and_three_times_is_none():
    letters = "abcdefghijklmnop"
    thought = " ".join(a + b + c for a in letters for b in letters for c in letters)
    assert len(thought.split()) == MAX_PERIOD
    assert find_loop(f"{thought}. " * 3) is None
    assert find_loop(f"{thought}. " * 4).repeats == 4


def test_thirty_words_said_again_are_needed():
    assert find_loop("drei kleine Wörter " * 10) is None
    assert find_loop("drei kleine Wörter " * 11).repeats == 11


def test_a_counter_counts_as_no_news_and_results_do():
    assert find_loop("".join(f"Runde {n}: noch kein Ergebnis.\n" for n in range(1, 150))).period == 5
    assert find_loop("".join(f"Runde {n}: das Ergebnis ist {n * n % 17}.\n" for n in range(1, 150))) is None


def test_a_counter_that_goes_down_or_in_tens_is_a_counter():
    assert find_loop("".join(f"Noch {n} Versuche, und keiner wird gelingen.\n" for n in range(40, 0, -1)))
    assert find_loop("".join(f"Nach {n} Minuten bin ich noch nicht weiter.\n" for n in range(10, 400, 10)))


@given(st.text(max_size=400))
def test_any_text_gets_an_answer_whose_places_lie_in_it(text):
    loop = find_loop(text)
    assert loop is None or (0 <= loop.start < loop.end <= len(text) and loop.repeats >= 4 and loop.period >= 1)


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=6), st.integers(0, 40), st.integers(2, 40))
def test_every_repetition_of_enough_words_is_found(period, before, repeats):
    """Compared with the definition: words beyond the first occurrence, in text that does not repeat before it."""
    prefix = "".join(f"w{chr(97 + n % 26)}{chr(97 + n // 26)} " for n in range(before))
    loop = find_loop(prefix + " ".join(period * repeats))
    primitive = next(p for p in range(1, len(period) + 1) if period * 2 == (period[:p] * 12)[: 2 * len(period)])
    times = len(period) * repeats // primitive
    is_loop = times >= 4 and len(period) * repeats - primitive >= 30
    assert (loop is not None) == is_loop
    assert loop is None or (loop.period, loop.repeats) == (primitive, times)


@pytest.mark.parametrize("unit", ["ja ", "x", "1 ", ". ", "Nr. 1 ", "\n", "| ", "foo(1) ", "再", "ab cd. ", "1,"])
def test_time_grows_with_the_length_of_the_text(unit):
    begun = time.process_time()
    find_loop((unit * 200_000)[:200_000] + "x")
    assert time.process_time() - begun < 10
