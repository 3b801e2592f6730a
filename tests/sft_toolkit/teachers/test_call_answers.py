"""Calls in a checker's answer as people and models write them: the last answer counts, a declaration is no call."""

import json
from pathlib import Path

import pytest

from sft_toolkit.teachers.call_answers import read_calls
from sft_toolkit.teachers.replies import Reply
from sft_toolkit.tool_calls import same_calls

CASES = Path(__file__).parents[2] / "cases" / "teachers" / "verify_cases.jsonl"
FLIGHT = {"from": "Berlin", "to": "Lissabon", "date": "2026-05-03"}
NAMES = {"book_flight": ["from", "to", "date"], "get_weather": ["city"]}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {key: {"type": "string"} for key in keys}},
        },
    }
    for name, keys in NAMES.items()
]
BOOK = {"name": "book_flight", "arguments": FLIGHT}
WEATHER = {"name": "get_weather", "arguments": {"city": "Lissabon"}}
D, C, W = (json.dumps(value) for value in (FLIGHT, BOOK, WEATHER))
DECLARED = json.dumps(TOOLS[0]["function"])
QWEN_CODER = (
    "<tool_call>\n<function=book_flight>\n<parameter=from>\nBerlin\n</parameter>\n<parameter=to>\nLissabon\n</parameter>"
    "\n<parameter=date>\n2026-05-03\n</parameter>\n</function>\n</tool_call>"
)
GLM = (
    "<tool_call>book_flight\n<arg_key>from</arg_key>\n<arg_value>Berlin</arg_value>\n<arg_key>to</arg_key>\n"
    "<arg_value>Lissabon</arg_value>\n<arg_key>date</arg_key>\n<arg_value>2026-05-03</arg_value>\n</tool_call>"
)
INVOKE = (
    '<function_calls>\n<invoke name="book_flight">\n<parameter name="from">Berlin</parameter>\n'
    '<parameter name="to">Lissabon</parameter>\n<parameter name="date">2026-05-03</parameter>\n</invoke>\n'
    "</function_calls>"
)


def calls_in(text):
    return read_calls(Reply(content=text), TOOLS)


@pytest.mark.parametrize(
    "case",
    [case for case in map(json.loads, CASES.read_text().splitlines()) if "checker_says" in case],
    ids=lambda case: case["kind"],
)
def test_a_case_derives_the_call(case):
    assert same_calls(calls_in(case["checker_says"]), [BOOK], TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        C,
        f"```json\n{C}\n```",
        f"I would call this:\n\n{C}\n\nIt books the flight.",
        f'{{"calls": [{C}]}}',
        f'[{{"type": "function", "function": {C}}}]',
        json.dumps({"name": "book_flight", "arguments": D}),
        str(BOOK),
        C[:-1] + ",}",
        '```json\n{\n  "name": "book_flight", // the tool\n  "arguments": ' + D + "\n}\n```",
        json.dumps({"name": "functions.book_flight", "arguments": FLIGHT}),
        json.dumps({"tool": "book_flight", "args": FLIGHT}),
        json.dumps({"tool_name": "book_flight", "parameters": FLIGHT}),
        json.dumps({"action": "book_flight", "action_input": FLIGHT}),
        json.dumps({"function": "book_flight", "arguments": FLIGHT}),
        json.dumps({"book_flight": FLIGHT}),
        f"book_flight {D}",
        f"book_flight({D})",
        f"book_flight: {D}",
        f"**book_flight**\n```json\n{D}\n```",
        f"Tool: `book_flight`\nArguments: `{D}`",
        f"I call book_flight with the arguments {D}.",
        f"Thought: a flight\nAction: book_flight\nAction Input: {D}",
        'book_flight(from="Berlin", to="Lissabon", date="2026-05-03")',
        f"```python\nbook_flight(**{D})\n```",
        QWEN_CODER,
        QWEN_CODER.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>"),
        GLM,
        INVOKE,
        f"<tool_call>\n{C}\n</tool_call>",
        f"[TOOL_CALLS]book_flight[ARGS]{D}",
        f"[TOOL_CALLS] [{C}]",
        f"<|python_tag|>{C}",
    ],
)
def test_a_call_is_read_however_it_is_written(text):
    assert same_calls(calls_in(text), [BOOK], TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        f"The tool is {DECLARED}. So: {C}",
        f"The tools are {json.dumps(TOOLS)}.\n{C}",
        f"{C}\n\nas declared: {DECLARED}",
        f'{{"calls": [{C}]}} for {json.dumps(TOOLS[0])}',
        f'Declared is {{"name": "book_flight", "description": "books a flight"}}, so {C}',
        f'Declared is {{"name": "book_flight", "description": "books", "parameters": {{}}}}, so {C}',
        f'{{"name": "book_flight", "input_schema": {{"type": "object", "properties": {{}}}}}} and {C}',
        f'The form is {{"calls": [{{"name": "…", "arguments": {{…}}}}]}}. {C}',
        f'{{"calls": [{{"name": "tool", "arguments": {{}}}}]}}\n{{"calls": [{C}]}}',
    ],
)
def test_a_declaration_and_the_form_of_an_answer_are_no_calls(text):
    assert same_calls(calls_in(text), [BOOK], TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        f'First: {{"calls": [{{"name": "book_flight", "arguments": {{"from": "Berlin"}}}}]}}. Corrected: {C}',
        f"Maybe {W}? No, the user wants to book: {C}",
        f"Entwurf:\n{W}\n\nEndgültig:\n{C}",
        f"<tool_call>\n{W}\n</tool_call>\nWait, that is wrong. The right call:\n<tool_call>\n{C}\n</tool_call>",
        f"{W}\n\nOn second thought a flight is meant.\n\n{QWEN_CODER}",
        f"get_weather(city='Oslo')? That is not asked. {C}",
        f'{{"calls": []}} would be wrong. {{"calls": [{C}]}}',
        f"{C}\n\nSo the final answer is {C}",
        f'{{"calls": [{W}]}}\n{{"calls": [{C}]}}',
    ],
)
def test_of_several_answers_the_last_one_counts(text):
    assert same_calls(calls_in(text), [BOOK], TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        f'{{"calls": [{C}, {W}]}}',
        f"[{C}, {W}]",
        f"{C}\n{W}",
        f"```json\n{C}\n```\n```json\n{W}\n```",
        f"1. {C}\n2. {W}",
        f"First call: {C}\nSecond call: {W}",
        f"{C} and then {W}",
        f"Zuerst {C} und dann {W}",
        f"- `{C}`\n- `{W}`",
        f"<tool_call>\n{C}\n</tool_call>\n<tool_call>\n{W}\n</tool_call>",
        f"{QWEN_CODER}\n<tool_call>\n<function=get_weather>\n<parameter=city>\nLissabon\n</parameter>\n</function>\n</tool_call>",
        f"book_flight {D}\nget_weather {json.dumps(WEATHER['arguments'])}",
    ],
)
def test_parallel_calls_are_one_answer(text):
    assert same_calls(calls_in(text), [BOOK, WEATHER], TOOLS)


@pytest.mark.parametrize("text", ['{"calls": []}', f'{{"calls": [{C}]}} has no ground. So: {{"calls": []}}'])
def test_an_answer_that_calls_nothing_is_empty(text):
    assert calls_in(text) == []


@pytest.mark.parametrize("text", ["", "No call follows.", 'It will return {"status": "ok"}.', DECLARED, "book_flight"])
def test_a_text_without_an_answer_is_none(text):
    assert calls_in(text) is None


def test_what_is_said_after_the_answer_does_not_undo_it():
    text = f'{C}\nbook_flight returns {{"status": "ok"}}, and then the user sees {{"price": 120}}.'
    assert same_calls(calls_in(text), [BOOK], TOOLS)


YAML_ARGUMENTS = "  from: Berlin\n  to: Lissabon\n  date: 2026-05-03"
DEEPER = YAML_ARGUMENTS.replace("  ", "      ")


@pytest.mark.parametrize(
    "text",
    [
        f"name: book_flight\narguments:\n{YAML_ARGUMENTS}",
        f"```yaml\nname: book_flight\narguments:\n{YAML_ARGUMENTS}\n```",
        f"The call is:\n\n```yml\ntool: book_flight\nargs:\n{YAML_ARGUMENTS}\n```\n\nNothing else follows.",
        f"calls:\n  - name: book_flight\n    arguments:\n{DEEPER}",
        f'- tool_name: "book_flight"\n  parameters:\n{DEEPER}',
        f"tool_calls:\n- function:\n    name: book_flight\n    arguments:\n{DEEPER}",
        f"book_flight:\n{YAML_ARGUMENTS}",
        "book_flight:\n  - from: Berlin\n  - to: Lissabon\n  - date: '2026-05-03'",
        "calls: [{name: book_flight, arguments: {from: Berlin, to: Lissabon, date: 2026-05-03}}]",
        "tool: book_flight\narguments: {from: Berlin, to: Lissabon, date: 2026-05-03}",
        "tool: book_flight\nfrom: Berlin\nto: Lissabon\ndate: 2026-05-03",
        "**Tool:** `book_flight`\n**Arguments:**\n- from: Berlin\n- to: Lissabon\n- date: 2026-05-03",
        "**Tool:** book_flight\n\n**Arguments:**\n* from: Berlin\n* to: Lissabon\n* date: 2026-05-03",
        f"Action: book_flight\nAction Input:\n{YAML_ARGUMENTS}",
        f"I use book_flight with:\n{YAML_ARGUMENTS}",
        f"Reasoning: The user names all three.\nname: functions.book_flight\narguments:\n{YAML_ARGUMENTS}\n",
        f"First: name: get_weather\n\nname: get_weather\narguments:\n  city: Oslo\n\nNo, corrected:\n\n"
        f"name: book_flight\narguments:\n{YAML_ARGUMENTS}",
        f"Draft: {W}. Final answer:\n```yaml\ncalls:\n- name: book_flight\n  arguments:\n{DEEPER}\n```",
        f"1. tool: book_flight\n   arguments:\n{DEEPER}",
        json.dumps({"tools": {"book_flight": FLIGHT}}),
        json.dumps({"tools": [{"book_flight": FLIGHT}]}),
        json.dumps({"tools": [BOOK]}),
        json.dumps({"tool": BOOK}),
        json.dumps({"calls": {"book_flight": FLIGHT}}),
        json.dumps({"calls": [{"name": "book_flight", **FLIGHT}]}),
        json.dumps(
            {"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "book_flight", "arguments": D}}]}
        ),
        json.dumps({"functions": [{"function": "book_flight", "args": FLIGHT}]}),
        json.dumps({"actions": [{"action": "book_flight", "action_input": FLIGHT}]}),
        json.dumps({"tool": "book_flight", **FLIGHT}),
        json.dumps({"reasoning": "All is known.", "answer": {"x": 1}, "tool_call": BOOK}),
        json.dumps({"book_flight": [{key: value} for key, value in FLIGHT.items()]}),
        json.dumps({"Tool": "book_flight", "Arguments": FLIGHT}),
    ],
)
def test_yaml_and_objects_by_their_keys_are_answers(text):
    assert same_calls(calls_in(text), [BOOK], TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        f"book_flight:\n{YAML_ARGUMENTS}\nget_weather:\n  city: Lissabon",
        f"- name: book_flight\n  arguments:\n{DEEPER}\n- name: get_weather\n  arguments:\n    city: Lissabon",
        json.dumps({"book_flight": FLIGHT, "get_weather": {"city": "Lissabon"}}),
        json.dumps({"tools": {"book_flight": FLIGHT, "get_weather": {"city": "Lissabon"}}}),
        f"name: book_flight\narguments:\n{YAML_ARGUMENTS}\n---\nname: get_weather\narguments:\n  city: Lissabon",
    ],
)
def test_several_calls_of_one_answer_are_read_together(text):
    assert same_calls(calls_in(text), [BOOK, WEATHER], TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        "name: book_flight\ndescription: books\nparameters:\n  type: object\n  properties:\n    from: {type: string}",
        "book_flight: the tool that books.\nget_weather: the tool that looks.",
        "Note: book_flight is not needed here.\nReason: nothing is asked.",
        "Tool: book_flight\nReason: it is the only one that books.",
        "book_flight\nWarning: no date is named.",
        "x: &a [1, 2]\ny: *a\nbook_flight: *a",
        "tools:\n" * 50 + "book_flight:",
        json.dumps({"tools": {"book_flight": TOOLS[0]["function"]["parameters"]}}),
        json.dumps({"name": "book_flight", "strict": True}),
    ],
)
def test_declarations_and_prose_with_colons_are_no_answer(text):
    assert not calls_in(text)


@pytest.mark.parametrize("text", ["calls: []", '{"tools": []}', '{"tool_calls": []}', f"{C}, or rather:\ncalls: []"])
def test_an_empty_list_is_an_answer_that_calls_nothing(text):
    assert calls_in(text) == []


def test_values_of_yaml_are_those_of_json():
    text = "tool: f\nargs:\n  n: 3\n  x: 1.5\n  yes: no\n  day: 2026-05-03\n  id: 007\n  flag: true\n  none: null"
    tool = {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {"properties": {key: {} for key in ["n", "x", "yes", "day", "id", "flag", "none"]}},
        },
    }
    (call,) = read_calls(Reply(content=text), [tool])
    assert call.arguments == {
        "n": 3,
        "x": 1.5,
        "yes": "no",
        "day": "2026-05-03",
        "id": "007",
        "flag": True,
        "none": None,
    }
