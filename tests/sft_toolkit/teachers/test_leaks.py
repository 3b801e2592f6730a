"""What gives a call away, kind by kind, and the plain words that do not."""

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from sft_toolkit.conversation import ToolCall
from sft_toolkit.teachers.leaks import leak_in

CASES = Path(__file__).parents[2] / "cases" / "teachers" / "backfill_leaks_not_caught.jsonl"
ARGUMENTS = {"from": "Berlin", "to": "Lissabon", "date": "2026-05-03", "seats": 2}
CALL = ToolCall("book_flight", ARGUMENTS)
LONE = ToolCall("get_weather", {"city": "Oslo"})
START = "Der Nutzer will von Berlin nach Lissabon fliegen, und zwar am 3. Mai zu zweit. "
AS_JSON = json.dumps({"name": "book_flight", "arguments": ARGUMENTS})


@pytest.mark.parametrize(
    "case", [json.loads(line) for line in CASES.read_text().splitlines()], ids=lambda case: case["kind"]
)
def test_a_case_is_a_leak(case):
    assert leak_in(case["writer_says"], [ToolCall(case["call"]["name"], case["call"]["arguments"])])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<tool_call>\n<function=book_flight>\n<parameter=from>\nBerlin", "markup"),
        ("<function=book_flight>", "markup"),
        ("<tool_call>book_flight\n<arg_key>from</arg_key>", "markup"),
        ('<function_calls>\n<invoke name="x">', "markup"),
        ("<|tool_call_begin|>functions.book_flight:0", "markup"),
        ('[TOOL_CALLS][{"name": "book_flight"', "markup"),
        ("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function", "markup"),
        ("Das genügt.<|im_end|>", "control token"),
        ("<|im_start|>assistant", "control token"),
        ("Das genügt.<｜end▁of▁sentence｜>", "control token"),
        ("Das genügt.</s>", "control token"),
        ("[INST] Und nun? [/INST]", "control token"),
        ("<end_of_turn>\n<start_of_turn>model", "control token"),
        ("<|eot_id|><|start_header_id|>user<|end_header_id|>", "control token"),
        ("<|endoftext|>", "control token"),
        (AS_JSON, "object"),
        ('{"name": "book_flight", "input": {"from": "Berlin"}}', "object"),
        ('{"name": "book_flight", "parameters": {"from": "Berlin"}}', "object"),
        ('{"tool_calls": [{"function": {"name": "book_flight", "arguments": "{}"}}]}', "object"),
        ("{'from': 'Berlin', 'to': 'Lissabon', 'date': '2026-05-03', 'seats': 2, 'class': None}", "object"),
        ("{'to': 'Lissabon', 'flexible': True}, {'from': 'Berlin'}", "object"),
        ('{"from": "Berlin"}', "object"),
        ('{"data": {"from": "Berlin", "to": "Lissabon"}}', "object"),
        ('```json\n{\n  "date": "2026-05-03",\n  "seats": 2\n}\n```', "object"),
        ('book_flight("Berlin", "Lissabon")', "object"),
        ("book_flight (from='Berlin')", "object"),
        ("await book_flight({from: 'Berlin'})", "object"),
        ("functions.book_flight:0", "object"),
        ("to=functions.book_flight", "object"),
        ("Action: book_flight\nAction Input: {", "object"),
        ("book_flight:\n  from: Berlin", "object"),
        ('("book_flight", "Berlin", "Lissabon")', "object"),
        ("dict(from_='Berlin')", "object"),
        ('{"tool": "book_flight"}', "object"),
        ("from: Berlin\nto: Lissabon\ndate: 2026-05-03", "name by name"),
        ("- **from**: Berlin\n- **to**: Lissabon", "name by name"),
        ("* `from` = `Berlin`\n* `to` = `Lissabon`", "name by name"),
        ("| from | Berlin |\n| to | Lissabon |", "name by name"),
        ('from = "Berlin"\nto = "Lissabon"', "name by name"),
        ("from=Berlin&to=Lissabon&seats=2", "name by name"),
        ("book_flight --from Berlin --to Lissabon", "name by name"),
        ("from → Berlin, to → Lissabon", "name by name"),
        ("<from>Berlin</from><to>Lissabon</to>", "name by name"),
        ("<parameter=from>\nBerlin\n</parameter>\n<parameter=seats>\n2\n</parameter>", "name by name"),
        (
            "<arg_key>from</arg_key>\n<arg_value>Berlin</arg_value>\n<arg_key>to</arg_key>\n<arg_value>Lissabon",
            "name by",
        ),
        ('"from": "Berlin", "to": "Lissabon"', "name by name"),
        (base64.b64encode(AS_JSON.encode()).decode(), "encoding"),
        (base64.urlsafe_b64encode(AS_JSON.encode()).decode().rstrip("="), "encoding"),
        (base64.b64encode(json.dumps(ARGUMENTS).encode()).decode(), "encoding"),
        (base64.b64encode(b"from: Berlin\nto: Lissabon\ndate: 2026-05-03").decode(), "encoding"),
        (base64.encodebytes(AS_JSON.encode()).decode(), "encoding"),
        (AS_JSON.encode().hex(), "encoding"),
        ("book_flight Berlin Lissabon"[::-1], "encoding"),
        (quote(AS_JSON), "encoding"),
        (AS_JSON.replace('"', "&quot;"), "encoding"),
        (AS_JSON.replace('"', "\\u0022"), "encoding"),
    ],
)
def test_a_call_leaks_in_whatever_form(text, kind):
    assert kind in leak_in(START + text, [CALL])


@pytest.mark.parametrize(
    "text",
    [
        "Der Aufruf ist mir vorgegeben: Berlin, Lissabon.",
        "Der nächste Aufruf steht schon fest, also suche ich nach Gründen.",
        "Die Aufrufe wurden bereits vorgegeben.",
        "Mir wurde der Aufruf mitgeteilt.",
        "Der Werkzeugaufruf ist bereits bekannt.",
        "Der vorgegebene Aufruf verlangt Berlin und Lissabon.",
        "Diese gegebenen Aufrufe passen zur Frage.",
        "Ich soll diesen Aufruf begründen.",
        "Nun begründe ich den Aufruf.",
        "Ich rechtfertige damit genau diesen Werkzeugaufruf.",
        "Laut Anweisung begründe ich ihn nun.",
        "Gemäß der Aufgabenstellung erkläre ich, warum es dieses Werkzeug ist.",
        "Wie verlangt begründe ich die Werte.",
        "Ich soll nun die Begründung dafür schreiben.",
        "Weil der Aufruf feststeht, suche ich nun Gründe.",
        "Der Zielaufruf lautet so.",
        "Ich kenne den Aufruf bereits.",
        "Die Lösung ist vorgegeben.",
        "Since I already know which call to make, I look for reasons.",
        "The call is given to me, so I only need reasons.",
        "The next tool call has already been predetermined.",
        "These calls were provided by the instructions.",
        "The tool call is already known.",
        "I was given the tool call and now look for reasons.",
        "The given call needs three values.",
        "This target call books a flight.",
        "I justify this call as follows.",
        "I have to rationalise the tool call.",
        "As instructed, I will now explain why a flight is due.",
        "I am asked to write the reasoning that comes before it.",
        "My thoughts must lead to exactly this call.",
        "L'appel est donné, il faut le justifier.",
        "La llamada ya está dada en las instrucciones.",
        "La chiamata è data, quindi cerco i motivi.",
    ],
)
def test_words_that_say_the_call_was_known_are_a_leak(text):
    assert leak_in(START + text, [CALL]) == "that the call was given"


@pytest.mark.parametrize(
    "text",
    [
        "Dafür hilft das Werkzeug für Flüge. Abflug ist Berlin, Ziel ist Lissabon, das Datum der 3. Mai 2026.",
        "Das Werkzeug book_flight braucht Abflug, Ziel und Datum: Berlin, Lissabon, 2026-05-03.",
        "Ich nehme book_flight() dafür, mit Berlin und Lissabon.",
        "Von Berlin aus (from) geht es nach Lissabon (to), am 2026-05-03.",
        "Der Nutzer hat das Datum vorgegeben, also nehme ich den 3. Mai.",
        "Der erste Aufruf ist gescheitert, weil das Datum fehlte. Ein zweiter Aufruf mit Datum sollte gehen.",
        "Vor dem Aufruf prüfe ich, ob alle Werte gegeben sind.",
        "Der Aufruf braucht ein Datum, und das ist bekannt.",
        "Die Werte, die ich dafür aufrufe, sind bekannt.",
        "Die Nutzerin möchte eine Begründung für die Verspätung schreiben lassen.",
        "Ich begründe dem Nutzer danach, warum der Flug so teuer ist.",
        "The tools that I can call are given above; book_flight is the right one.",
        "Given that the user wants to fly, I call book_flight next.",
        "The call to get_weather was already made, so only the booking is left.",
        "After that call the date is known, and the booking can be made.",
        "The user provided the date, and the phone call is tomorrow.",
        "I need to explain why the call failed before.",
        'Zuvor kam {"status": "ok", "price": 120} zurück.',
        "Die Antwort war {}.",
        "Die Antwort ist bekannt, wenn das Werkzeug geantwortet hat.",
        "Ob der Flug feststeht, zeigt die Buchung.",
        "Ich kenne den Anruf von gestern schon.",
        'Zur Wahl stehen "book_flight", "book_hotel" und "search".',
        "Das Werkzeug dafür: book_flight, denn es bucht Flüge.",
        "I already know the date, so a call can follow.",
        "Die Aktion: erst suchen, dann buchen.",
        "Zeit: 10:00, Preis = 120, Gate → B7.",
        "a < b und c > d, also <b>fett</b> und <br>.",
        "Der Preis liegt bei <= 200 Euro | hin und zurück.",
        "Benutzerfreundlichkeit und Donaudampfschifffahrtsgesellschaft sind lange Wörter.",
        "Die Prüfsumme ist d41d8cd98f00b204e9800998ecf8427e.",
        "Die Adresse lautet https://example.org/buchen?id=17&lang=de%22.",
        "{ unvollständig",
    ],
)
def test_plain_words_are_no_leak(text):
    assert leak_in(START + text, [CALL]) is None


@pytest.mark.parametrize(
    ("text", "leaks"),
    [
        ("city: Oslo", True),
        ("- city: Oslo", True),
        ("Die Stadt ist klar.\ncity = 'Oslo'\nAlso los.", True),
        ("Gefragt ist nach der city: Oslo liegt in Norwegen.", False),
        ("Die Stadt heißt Oslo.", False),
    ],
)
def test_an_only_argument_leaks_on_a_line_of_its_own(text, leaks):
    assert (leak_in(text, [LONE]) is not None) == leaks


def test_any_of_several_calls_leaks():
    assert leak_in('So {"city": "Oslo"} ist es.', [CALL, LONE])
    assert leak_in('So {"city": "Oslo"} ist es.', [CALL]) is None


def test_a_bare_word_that_stands_for_arguments_may_be_named():
    call = ToolCall("suche", "Berlin", problem="arguments is not JSON")
    assert leak_in("Der Nutzer fragt nach Berlin.", [call]) is None


def test_a_call_without_arguments_does_not_leak_in_an_empty_object():
    assert leak_in("Das Ergebnis war {}.", [ToolCall("liste", {})]) is None


def test_nested_arguments_leak_by_their_names_too():
    call = ToolCall("book", {"passenger": {"name": "Anna", "born": 1990}, "seat": "12A"})
    assert leak_in("Gebucht wird für name: Anna, born: 1990.", [call])


@pytest.mark.parametrize(
    "unit", ["{", '{"a":', "from ", "from: ", "A", "ab ", "Aufruf ist ", "<", "call was ", "00 ", "%22"]
)
def test_time_grows_with_the_length_of_the_text(unit):
    leak_in(unit * (50_000 // len(unit)), [CALL])
