"""Calls anywhere in a text: found in every dialect, with their place; declarations and prose are none."""

from __future__ import annotations

import pytest

from sft_toolkit.formats.dialects import find_calls, find_objects
from tests.dialect_writers import BARE_WRITERS, JSON_WRITERS, PYTHON_WRITERS, TYPED_WRITERS

TOOLS = [{"name": "find", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]
WRITERS = {**JSON_WRITERS, **PYTHON_WRITERS, **TYPED_WRITERS, **BARE_WRITERS}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_call_amid_prose_or_in_code_is_found_with_its_place(write):
    written = write([("find", {"city": "Bonn"})])
    for before, behind in (("So I call ", "."), ("```\n", "\n```"), ("", "")):
        text = f"{before}{written}{behind}"
        (found,) = find_calls(text, TOOLS)
        assert (found.call.name, found.call.arguments) == ("find", {"city": "Bonn"})
        assert len(before) <= found.begin < found.end <= len(text)
        assert written.strip("[] \n").startswith(text[found.begin : found.end].strip("[] \n")[:12])


@pytest.mark.parametrize(
    "text",
    [
        "I take find with the city Bonn.",
        'The tool is {"name": "find", "parameters": {"type": "object", "properties": {}}}.',
        '{"status": "ok", "city": "Bonn"}',
        '{"name": "Ida", "age": 3}',
        "find (the tool) helps",
        "<tool_call> is a tag, [TOOL_CALLS] a token.",
        "{ unfinished",
    ],
)
def test_prose_results_and_declarations_are_no_calls(text):
    assert find_calls(text, TOOLS) == []


def test_calls_stand_in_the_order_of_the_text_and_nested_lists_are_looked_through():
    text = (
        '{"calls": [{"name": "a", "arguments": {}}, {"name": "b"}]} then find(city="x") and <function=c>{}</function>'
    )
    assert [(found.call.name, found.dialect) for found in find_calls(text, TOOLS)] == [
        ("a", "object"),
        ("b", "object"),
        ("find", "code"),
        ("c", "<function=…>"),
    ]


def test_objects_are_found_as_json_and_as_python_writes_them():
    found = list(find_objects("""a {"x": 1} b {'y': None} c {z} d {"e": {"f": 2}}"""))
    assert [each.value for each in found] == [{"x": 1}, {"y": None}, {"e": {"f": 2}}]
