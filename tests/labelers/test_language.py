"""The verdict on a trace's language: its rules one by one, a labelled set, and the marks of translation."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.labelers.language import identify, judge_language, judged_stretches
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


def test_a_teacher_caught_in_a_loop_of_50_000_characters_is_judged_in_time_that_grows_with_its_length():
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
        "texts = [(loop * 50_000)[:50_000] + 'x' for loop in sys.argv[1:]];"
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


CASES = Path(__file__).parents[1] / "cases" / "teachers"


@pytest.mark.parametrize(
    "case",
    [json.loads(line) for line in (CASES / "language.jsonl").read_text(encoding="utf-8").splitlines()],
    ids=lambda case: case["id"],
)
def test_a_case_stays_or_switches(case):
    prompt, answer = case["messages"]
    verdict = judge_language(answer["reasoning"], case.get("language", "de"), prompt["content"])
    assert verdict.stays is (case["expect"] == "stays")


@pytest.mark.parametrize(
    "sentence",
    [
        "Man war so still im Haus.",
        "Also, so war das gar nicht.",
        "Wer was will, muss auch was tun.",
        "Wo will man hin, wenn man nicht weiß, was man hat?",
        "Da war er dann, der Rest.",
        "So ist es, und so war es immer.",
        "Das Problem mit dem Set ist die Hand.",
        "Was soll ich tun, was darf ich hoffen?",
        "In dem Fall hat man zwei, in dem anderen drei.",
        "Am Ende gewinnt, wer am besten rechnen kann.",
        "Hat man das, hat man alles.",
        "Im Film The Lord of the Rings kommt das nicht vor.",
        "Der Roman heißt Gone with the Wind, geschrieben hat ihn Margaret Mitchell.",
        "Das ist State of the Art, wie man so sagt.",
        "Der Server läuft unter Windows NT mit Service Pack 4.",
        "Ich nehme Copy and Paste und bin fertig.",
        "Er spielte Bach, Händel und Johann Pachelbel.",
        "Juan de la Cruz und Ludwig van Beethoven kannten sich nicht.",
        "Schalter: on|off, dann After=basic.target und www.example.org.",
        "Pro Kopf sind es 3 kg, per Post dauert es länger.",
    ],
)
def test_plain_german_sentences_stay_german_whatever_an_identifier_says(sentence):
    assert judge_language(f"{GERMAN} {sentence} {GERMAN}").stays is True


@pytest.mark.parametrize(
    "drift",
    [
        "Let me check that.",
        "That is correct.",
        "So that is it.",
        "I see.",
        "It works.",
        "Wait, that is wrong.",
        "No, it is not.",
        "But is it true?",
        "Why is that so?",
        "THIS IS NOT WHAT WE WANT.",
        "LET US TRY IT ONCE MORE.",
        "Let Me Check This Once More.",
        "Now We Know That It Is Prime.",
        "Das ist leicht, but we have to check whether it holds for every case.",
        "We have to divide both sides by two, und das geht auf.",
        "Wir sehen nun and then we have to look at the other side noch einmal genau hin.",
        "The sum (wie oben) is what we are looking for.",
        "C'est la même chose que dans le premier cas.",
        "Ahora tenemos que comprobar si es correcto.",
        "Questo non è quello che stiamo cercando.",
        "Agora temos que verificar se está certo.",
        "Nu moeten we nog eens kijken of het klopt.",
        "Teraz musimy sprawdzić jeszcze raz cały wynik.",
        "Теперь проверим ещё раз.",
        "让我们再检查一遍这个结果。",
        "もう一度この結果を確認します。",
    ],
)
def test_a_sentence_or_half_of_one_in_another_language_is_drift(drift):
    text = f"{GERMAN} {drift} {GERMAN}"
    verdict = judge_language(text)
    assert verdict.stays is False
    assert verdict.offending.start >= len(GERMAN)


@pytest.mark.parametrize(
    ("language", "own", "drift"),
    [
        ("en", "We divide the distance by the time and get the average speed.", "Das ist aber nicht, was wir suchen."),
        ("fr", "On divise la distance par le temps pour obtenir la vitesse.", "Let us check that once more."),
        ("es", "Dividimos la distancia por el tiempo y obtenemos la velocidad.", "Let us check that once more."),
        ("it", "Dividiamo la distanza per il tempo e otteniamo la velocità.", "Let us check that once more."),
        ("pt", "Dividimos a distância pelo tempo e obtemos a velocidade média.", "Let us check that once more."),
        ("nl", "We delen de afstand door de tijd en krijgen de gemiddelde snelheid.", "Das ist aber nicht richtig so."),
        (
            "pl",
            "Dzielimy drogę przez czas i otrzymujemy średnią prędkość samochodu.",
            "We have to check that once more.",
        ),
        ("ru", "Делим расстояние на время и получаем среднюю скорость.", "We have to check that."),
        ("zh", "我們先計算三角形的面積，然後再檢查答案是否正確。", "Wait, let me check that again."),
        ("ja", "距離を時間で割って、平均の速さを求めます。", "Wait, let me check that again."),
        ("ko", "거리를 시간으로 나누면 평균 속력을 얻는다.", "Wait, let me check that again."),
    ],
)
def test_every_language_stays_by_itself_and_drifts_with_another(language, own, drift):
    assert judge_language(f"{own} {own}", language).stays is True
    assert judge_language(f"{own} {drift} {own}", language).stays is False


@pytest.mark.parametrize("text", ["我們先計算三角形的面積", "有略其耜，俶載南畝，播厥百穀"])
def test_ideographs_without_kana_are_chinese(text):
    assert identify(text)[0] == "zh"


def test_what_is_not_clearly_foreign_counts_by_the_length_of_the_trace():
    odd = "Znarck has joined."
    assert [stretch.is_clear for stretch, is_own in judged_stretches(odd, "de") if not is_own] == [False]
    filler = "\n".join(f"{GERMAN} Das gilt für den Fall {number}." for number in range(200))
    assert judge_language(f"{GERMAN} {odd}").stays is False
    verdict = judge_language(f"{filler}\n{odd}")
    assert (verdict.stays, verdict.offending) == (True, None)
    assert 0.99 < verdict.share < 1
    assert judge_language(f"{odd}\n{filler}\n{odd}").stays is False


def test_short_german_sentences_are_judged_by_their_closed_class_words():
    assert judge_language("Das ist es. So geht das nicht.").stays is True
    assert judge_language("Ja. Gut. Super.").stays is None


@pytest.mark.skipif(not Path("/usr/share/games/fortunes/de").is_dir(), reason="needs the Debian package fortunes-de")
def test_sayings_of_many_hands_hardly_ever_drift():
    """`python benchmarks/long_traces.py` has the figures; here the proverbs, of which none is in another language."""
    sayings = Path("/usr/share/games/fortunes/de/sprichworte").read_text(encoding="utf-8").split("\n%\n")
    assert sum(judge_language(saying).stays is False for saying in sayings) <= len(sayings) / 1000


@pytest.mark.parametrize("text", (CASES / "artefacts_not_artefacts.txt").read_text(encoding="utf-8").splitlines())
def test_a_case_of_sound_german_bears_no_mark(text):
    assert find_artefacts(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Aus Lemma 3.4 und 3.5 folgt Satz 4.2.",
        "Nach Theorem 1.2, Korollar 1.3 und Proposition 2.4 gilt das.",
        "Siehe Abbildung 2.1 sowie Tabelle 3.2.",
        "In den Abschnitten 2.1 bis 2.4 steht mehr.",
        "Laut Aufgabe 3.2 ist x gesucht.",
        "Die Gleichungen (2.3) und (2.4) ergeben das.",
        "Aus (2.3) folgt die Behauptung.",
        "Nach § 3.2 der Ordnung gilt das.",
        "HDMI 2.1 und PCIe 4.0 sind schneller, TLS 1.3 ist sicherer.",
        "Python 3.11 und Django 4.2 laufen unter Debian 12.5.",
        "Mit torch 2.1 und pandas 2.2 klappt es.",
        "Windows 8.1 wird nicht mehr unterstützt.",
        "Java 1.8 und Kotlin 1.9 gehen auch.",
        "Das HTTP 1.1 Protokoll kennt das nicht.",
        "Die Sitzung ist am 3.5. in Köln.",
        "Vom 1.4. bis 30.6. bleibt das Büro zu.",
        "Bis zum 24.12. muss alles fertig sein.",
        "Der Vertrag gilt ab 1.1. und endet im Sommer.",
        "Am Dienstag, den 7.10., treffen wir uns.",
        "Er kommt gegen 8.30 und geht um 17.45.",
        "Der Film läuft von 20.15 bis 22.00 Uhr.",
        "Kurz nach 9.15 begann es zu regnen.",
        "Der Bus um 6.05 fällt aus.",
        "In Mt 5.3 und Lk 6.20 steht es anders.",
        "Röm 8.28 sagt es so.",
        "1. Kor 13.4 handelt von der Liebe.",
        "Es waren 1.250 Menschen und 12.500 Tiere.",
        "Im Code steht x = 0.5, das ist der Startwert.",
        "Die Ausgabe lautet 3.14, also passt es.",
        "Im Englischen schreibt man 3.5 mit Punkt, im Deutschen mit Komma.",
        "Der Punkt in 3.5 wird zu einem Komma.",
        "Regeln sind Regeln.",
        "Ein Kreis ist ein Kreis, wenn alle Punkte gleich weit entfernt sind.",
        "Ein Graph ist ein Graph, in dem Kanten Knoten verbinden.",
        "Krieg ist Krieg, sagt man.",
        "Das Komma steht im deutschen Satz vor dem Nebensatz 2.",
        "Die IP lautet 192.168.0.1 im Netz.",
        "Das Kapitel 3.2.1 ist kurz.",
        "2.3 Beweis des Satzes",
        "Version 2.0 ist da, Release 3.1 folgt.",
        "Auf Seite 3.4 des Heftes steht es.",
        "Seit Glibc 2.24 und Kernelversion 5.7 geht das.",
    ],
)
def test_references_versions_dates_times_and_verses_bear_no_mark(text):
    assert find_artefacts(text) == []


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("Die Temperatur fiel auf -3.5 Grad.", "-3.5"),
        ("Es bleiben −0.25 übrig.", "−0.25"),
        ("Das wiegt 2.5kg.", "2.5"),
        ("Das sind 1,234.56 Euro.", "1,234.56"),
        ("Das sind 12,345,678.90 Euro.", "12,345,678.90"),
        ("Er läuft 3.5km am Tag.", "3.5"),
        ("Die Quote liegt bei 0.5%.", "0.5"),
        ("Das sind 99.9 % aller Fälle.", "99.9"),
        ("Der Preis ist $3.50 pro Stück.", "$3.50"),
        ("Er zahlt 14.30 Euro dafür.", "14.30"),
        ("Um 2.5 Prozent stieg der Preis.", "2.5"),
        ("Die Note am Ende ist 2.7 im Schnitt.", "2.7"),
        ("Das Ergebnis ist (0.75) und damit klein.", "0.75"),
        ("Der Faktor beträgt 1.5 insgesamt.", "1.5"),
        ("Die Länge beträgt 21.12 Meter.", "21.12"),
        ("Also ist x = 2.5 und y = 7.25 die Lösung.", "2.5"),
        ("Das Volumen ist etwa 3.7 Liter groß.", "3.7"),
        ("Die Wurzel aus 2 ist ungefähr 1.4142 und irrational.", "1.4142"),
        ("Die Datenrate liegt bei 2.4GB pro Tag.", "2.4"),
        ("Der Kurs fiel von 1.85 auf 1.62 im Mai.", "1.85"),
        ("Die neue Version wiegt 2.5 kg.", "2.5"),
    ],
)
def test_decimals_in_english_writing_are_marked_whatever_stands_around_them(text, marked):
    assert marked in [text[found.start : found.end] for found in find_artefacts(text)]


_PROSE_AFTER = "Now we have to check the second case, and it is not easy to see."
_CODE = """
for item in items:
    print(item)  # shows every item of the list

# We walk over the list once more here.
total = sum(items)
"""


@pytest.mark.parametrize(
    "text",
    [
        f"Erst der Code, dann die Prüfung.\n```python{_CODE}\n{_PROSE_AFTER}",
        f"Erst der Code, dann die Prüfung.\n```{_CODE}\n{_PROSE_AFTER}\n\nDas war alles.",
        f"Erst der Code, dann die Prüfung.\n~~~ sql\nSELECT 1;\n\n{_PROSE_AFTER}",
        f"Erst der Code.\n```python\nx = 1\n\n{_PROSE_AFTER}\n\n```python\ny = 2\n```\nFertig sind wir damit.",
        f"Erst der Code.\n```python\nx = 1\n```\nGut so weit.\n```\ny = 2\n\n{_PROSE_AFTER}",
    ],
)
def test_prose_after_a_fence_that_nobody_closes_is_judged(text):
    verdict = judge_language(text)
    assert verdict.stays is False
    assert text[verdict.offending.start : verdict.offending.end].startswith("Now we have to")


@pytest.mark.parametrize(
    "text",
    [
        f"Erst der Code, dann die Prüfung des Ganzen.\n```python{_CODE}",
        f"Erst der Code, dann die Prüfung des Ganzen.\n```python{_CODE}\n\nif total:\n    raise it",
        f"Das ist die Datei, die wir brauchen.\n```markdown\n# Read me\n\n{_PROSE_AFTER}\n```",
        f"Das ist die Datei, die wir brauchen.\n```markdown\n{_PROSE_AFTER}\n\n```bash\nls\n```\n{_PROSE_AFTER}\n```",
        f"Wir schreiben es kurz hin.\n```\n{_PROSE_AFTER}\n\n{_PROSE_AFTER}\n```\nDas war es schon.",
        "Wir nehmen den Code von oben.\n```js\nlet a = 1;\n\n// This is the second part of it.\n\nlet b = 2;",
        "Wir nehmen den Code von oben.\n```python\ndef f(x):\n\n    This is what it gives back to us.\n\n    return x",
    ],
)
def test_code_behind_a_fence_is_none_of_the_writers_language(text):
    assert judge_language(text).stays is True


@pytest.mark.parametrize(
    "sentence",
    [
        "`foo bar` is what we have to call now (and it is not easy to see why).",
        "`quotacheck ` 察看每一个文件系统,建立当前磁盘使用情况表 (这一步将省略).",
    ],
)
def test_a_sentence_that_begins_with_inline_code_is_no_line_of_code(sentence):
    assert judge_language(f"Wir rechnen es in aller Ruhe nach.\n{sentence}").stays is False
