"""The verdict on a trace's language: its rules one by one, a labelled set, and the marks of translation."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.labelers.language import identify, judge_language
from sft_toolkit.labelers.prose import prose, without_code
from sft_toolkit.labelers.translation_artefacts import find_artefacts

TRACES = Path(__file__).parents[2] / "sample_data" / "language_traces.jsonl"
GERMAN = "Wir teilen die Strecke durch die Zeit und erhalten so die mittlere Geschwindigkeit."


def test_a_drift_that_whole_text_identification_misses_fails_and_is_named():
    text = f"{GERMAN} Das sind 75 Kilometer in der Stunde. Wait, let me check that again. {GERMAN}"
    assert identify(text)[0] == "de"
    verdict = judge_language(text)
    assert verdict.stays is False
    assert text[verdict.offending.start : verdict.offending.end] == "Wait, let me check that again"
    assert verdict.offending.language == "en"
    assert 0 < verdict.share < 1


@pytest.mark.parametrize("text", ["", "Also: 16 - 3 - 4 = 9", "Antwort: 18 Dollar", "```\nreturn the sorted list\n```"])
def test_what_is_too_short_to_judge_is_undecided(text):
    verdict = judge_language(text)
    assert (verdict.stays, verdict.share, verdict.judged, verdict.offending) == (None, None, 0, None)


@pytest.mark.parametrize("text", ["Die Antwort lautet also Canberra.", "Jeder zahlt also 28 Dollar."])
def test_names_do_not_make_a_short_german_sentence_foreign(text):
    assert identify(text)[0] == "en"
    assert judge_language(text).stays is not False


def test_prose_without_sentence_marks_is_caught_by_the_windows():
    drifting = GERMAN.rstrip(".") + " and now we have to think about what the user really wants from us here " + GERMAN
    assert judge_language(drifting).stays is False


def test_a_chinese_drift_of_few_characters_counts():
    assert judge_language(f"{GERMAN} 我们需要再检查一下这个答案是否正确。{GERMAN}").offending.language == "zh"


def test_what_is_copied_from_the_prompt_does_not_count_and_the_same_words_without_the_prompt_do():
    prompt = "Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in May."
    text = f"Die Aufgabe sagt: {prompt} {GERMAN}"
    assert judge_language(text, prompt=prompt).stays is True
    assert judge_language(text).stays is False


def test_three_copied_words_are_no_quotation_and_four_are():
    assert prose("we think that so", "he said we think that too") == "we think that so"
    assert prose("we think that so", "he said we think that so") == " " * 16


def test_english_is_judged_as_well_as_german():
    english = "We divide the distance by the time and get the average speed of the car."
    assert judge_language(english, "en").stays is True
    assert judge_language(f"{english} {GERMAN}", "en").offending.language == "de"


def test_an_unknown_language_is_refused():
    with pytest.raises(ValueError, match="xx: not a language"):
        judge_language(GERMAN, "xx")


@pytest.mark.parametrize(
    "taken_out",
    [
        "`return the list`",
        "$x \\text{ is the sum of all } y$",
        "$$\\int_0^3 x^2 dx$$",
        "\\[ a = b \\]",
        "\\begin{align} this is code \\end{align}",
        "https://example.org/this/is/the/page",
        "/usr/share/doc/python",
        "<tool_call>",
        "„this is what he said“",
        '"this is what he said"',
        "»this is what he said«",
        "build_cache_key()",
        "userAccountManager",
        "1234",
    ],
)
def test_what_is_no_prose_becomes_spaces_of_the_same_length(taken_out):
    assert prose(f"vor {taken_out} nach") == f"vor {' ' * len(taken_out)} nach"


def test_a_quotation_ends_with_its_paragraph():
    text = 'Ein 5" breites Brett\n\nund noch eines mit 6" Breite'
    assert "breites Brett" in prose(text)


@given(st.text(max_size=300), st.text(max_size=100))
def test_prose_keeps_every_place(text, prompt):
    kept = prose(text, prompt)
    assert len(kept) == len(text)
    assert all(left in (original, " ") for left, original in zip(kept, text, strict=True))
    assert [i for i, c in enumerate(text) if c == "\n"] == [i for i, c in enumerate(kept) if c == "\n"]


@given(st.text(max_size=200))
def test_any_text_gets_a_verdict_that_is_in_order(text):
    verdict = judge_language(text)
    assert (verdict.judged == 0) == (verdict.stays is None) == (verdict.share is None)
    assert (verdict.stays is False) == (verdict.offending is not None)


def test_a_teacher_caught_in_a_loop_of_200_000_characters_is_judged_in_time_that_grows_with_its_length():
    loops = [
        "a",
        "1",
        ".",
        "!",
        " ",
        "-",
        "und ",
        "a.b",
        "a/",
        "a@",
        "\\(",
        "\\begin{a}",
        "    a = ",
        "1,",
        "Komma ",
        "我们",
    ]
    program = (
        "import sys; from sft_toolkit.labelers.language import judge_language;"
        "from sft_toolkit.labelers.translation_artefacts import find_artefacts;"
        "texts = [(loop * 200_000)[:200_000] + 'x' for loop in sys.argv[1:]];"
        "[(judge_language(text), find_artefacts(text)) for text in texts]"
    )
    subprocess.run([sys.executable, "-c", program, *loops], check=True, timeout=300)


@pytest.mark.parametrize("half", ["development", "test"])
def test_precision_and_recall_on_the_labelled_set_reach_97_percent(half):
    rows = [json.loads(line) for line in TRACES.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["half"] == half]
    stays = [judge_language(row["reasoning"], "de", row["prompt"]).stays is True for row in rows]
    hits = sum(found and row["stays_german"] for found, row in zip(stays, rows, strict=True))
    assert len(rows) == 66
    assert hits / sum(stays) >= 0.97
    assert hits / sum(row["stays_german"] for row in rows) >= 0.97


@pytest.mark.parametrize(
    ("text", "kind", "marked"),
    [
        ("Die Wahrscheinlichkeit beträgt 0.45 und ist klein.", "decimal_point", "0.45"),
        ("Das kostet zusammen 16.20 Euro.", "decimal_point", "16.20"),
        ("Der Wert von Pi ist etwa 3.14159.", "decimal_point", "3.14159"),
        ("Der Anteil beträgt 0.125 am Ganzen.", "decimal_point", "0.125"),
        ("Hier gilt: 0,45 bedeutet 0.45 als Zahl.", "explained_comma", "0,45 bedeutet 0.45"),
        (
            "Das sind 2,5, denn im Deutschen steht ein Komma statt eines Punktes.",
            "explained_comma",
            "Das sind 2,5, denn im Deutschen",
        ),
        ("Brötchen sind Brötchen, die man kauft.", "self_gloss", "Brötchen sind Brötchen"),
        ("Er kauft Brötchen (Brötchen) am Morgen.", "self_gloss", "Brötchen (Brötchen)"),
    ],
)
def test_marks_of_translation_are_found_where_they_stand(text, kind, marked):
    assert [(found.kind, text[found.start : found.end]) for found in find_artefacts(text)] == [(kind, marked)]


@pytest.mark.parametrize(
    "text",
    [
        "Die Stadt hat etwa 1.250 Einwohner und 12.500.000 Besucher.",
        "Am 3.10.1990 war der Tag der Einheit.",
        "Der Zug fährt um 14.30 Uhr in Köln ab.",
        "Das steht in Abschnitt 2.1 und gilt ab Version 3.11.",
        "2.1 Lösung der Aufgabe",
        "The probability is 0.45 and therefore small.",
        "Setze `x = 0.45` in die Formel $y = 0.5$ ein.",
        "Die Antwort ist eine Antwort auf vieles.",
        "Das Ergebnis ist 0,45.",
    ],
)
def test_sound_german_bears_no_mark(text):
    assert find_artefacts(text) == []


def test_code_is_left_out_before_sentences_are_read():
    assert without_code("Setze `a.b` ein") == "Setze       ein"
