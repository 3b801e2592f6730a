"""Tool declarations, compiled: what they reject, what they leave open, what cannot be used."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from sft_toolkit.tool_calls.schema import BrokenSchema, Rejection, Tool, compile_tools
from sft_toolkit.tool_calls.subschemas import applicable, pointer, resolve
from sft_toolkit.tool_calls.type_names import with_json_types


def tool(parameters: Any, **beside: Any) -> Tool:
    return compile_tools([{"name": "t", "parameters": parameters, **beside}])["t"]


def one(schema: Any) -> Tool:
    """A tool with the one argument x."""
    return tool({"type": "object", "properties": {"x": schema}})


@pytest.mark.parametrize(
    ("schema", "accepted", "rejected"),
    [
        ({"type": "number"}, [5, Decimal("16.20"), Decimal("1e400")], ["16.20", True, None]),
        ({"type": "integer"}, [3, Decimal("3.0"), 10**30], [Decimal("3.5"), "3", False]),
        ({"type": "float"}, [3, Decimal("3.5")], ["3.5"]),
        ({"type": "dict"}, [{}], [[], "x"]),
        ({"type": "tuple", "items": {"type": "float"}}, [[1, Decimal("2.5")]], [["a"], "ab"]),
        ({"type": "any"}, [1, "a", None, []], []),
        ({"type": "List[int]"}, [[1], []], [1, ["a"], [Decimal("1.5")]]),
        ({"type": "Optional[str]"}, ["a", None], [1]),
        ({"type": "str, optional"}, ["a"], [5, None]),
        ({"type": "Union[int, str]"}, [1, "a"], [Decimal("1.5"), None, [1]]),
        ({"type": "int | None"}, [1, None], ["1"]),
        ({"type": "string or number"}, ["a", 1], [True]),
        ({"type": "Literal['a', 'b']"}, ["a"], ["c"]),
        ({"type": "List[Union[int, str]]"}, [[1, "a"]], [[None], "a"]),
        ({"type": "list of strings"}, [["a"]], [[1]]),
        ({"type": "Tuple[int, str]"}, [[1, "a"]], [1]),
        ({"type": "Array<string>"}, [["a"]], [[1]]),
        ({"type": ""}, [1, "a"], []),
        ({"type": "string", "nullable": True}, ["a", None], [1]),
        ({"type": "STRING", "nullable": True, "enum": ["a", "b"]}, ["a", None], ["c", 1]),
        ({"type": "string", "nullable": False}, ["a"], [None]),
        ({"anyOf": [{"type": "string"}], "nullable": True}, ["a", None], [1]),
        ({"enum": ["a"], "nullable": True}, ["a", None], ["b"]),
        ({"type": "string", "enum": []}, ["a"], [1]),
        ({"type": "string", "enum": None, "anyOf": []}, ["a"], [1]),
        ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, [1], [0]),
        ({"type": "array", "items": [{"type": "int"}], "additionalItems": False}, [[1]], [["a"], [1, 2]]),
        ({"type": ["str", "None"]}, ["a", None], [1]),
        ({"multipleOf": Decimal("0.01")}, [Decimal("16.20")], [Decimal("16.205")]),
        ({"maximum": 2512292042121000000}, [2512292042121000000], [2512292042121000001]),
        ({"enum": [1, Decimal("16.2")]}, [Decimal("1.0"), Decimal("16.20")], [True, "1"]),
        ({"type": "string", "format": "date"}, ["soon"], [5]),
    ],
)
def test_values_are_judged_by_the_mapped_schema(schema: Any, accepted: list[Any], rejected: list[Any]) -> None:
    for value in accepted:
        assert one(schema).rejection({"x": value}) is None
    for value in rejected:
        rejection = one(schema).rejection({"x": value})
        assert rejection is not None
        assert rejection.path.startswith("/x")


def test_a_rejection_says_where_and_what() -> None:
    declared = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    assert tool(declared).rejection({"a": [1, "x"]}) == Rejection("/a/1", '"x" is not of type "integer"')
    assert tool({**declared, "required": ["b"]}).rejection({}) == Rejection("", "b is required")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strnig"},
        {"$ref": "#/$defs/Missing"},
        {"$ref": "http://127.0.0.1:1/remote.json"},
        {"$ref": "file:///etc/hostname"},
        {"pattern": "("},
        {"required": "x"},
        {"minimum": "1"},
        {"not": {"type": "strnig"}},
        7,
    ],
)
def test_a_schema_that_cannot_be_used_is_broken_and_nothing_else(schema: Any) -> None:
    broken = one(schema)
    with pytest.raises(BrokenSchema):
        broken.rejection({"x": 1})
    assert broken.undeclared({"y": 1}) == []
    assert broken.defaults == {}
    assert not broken.treats_null_as_missing("x")


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "strnig"},
        {"$ref": "#/$defs/Missing"},
        {"$ref": "#/anyOf/²"},
        {"$ref": "#/anyOf/" + "9" * 5000},
        {"pattern": "("},
        {"minimum": "1"},
        7,
        {"anyOf": [{"type": "int"}, {"type": "strnig"}]},
        {"type": "np.ndarray"},
    ],
)
def test_one_odd_property_does_not_blind_the_rest(odd: Any) -> None:
    declared = tool({"type": "object", "properties": {"x": odd, "city": {"type": "string"}}, "required": ["city"]})
    assert declared.rejection({"x": 1, "city": 5}) == Rejection("/city", '5 is not of type "string"')
    assert declared.rejection({"x": 1}) == Rejection("", "city is required")
    with pytest.raises(BrokenSchema):
        declared.rejection({"x": 1, "city": "Bonn"})


def test_a_flag_of_a_property_names_it_as_required() -> None:
    declared = tool(
        {"type": "object", "properties": {"a": {"type": "str", "required": True}, "b": {"required": False}}}
    )
    assert declared.rejection({}) == Rejection("", "a is required")
    assert declared.rejection({"a": "x"}) is None


def test_flat_parameters_are_a_schema_of_their_own() -> None:
    flat = tool(
        {
            "city": {"description": "City", "type": "str"},
            "days": {"type": "int, optional", "default": 3},
            "unit": {"type": "str", "default": "C"},
        }
    )
    assert flat.rejection({"city": "Bonn"}) is None
    assert flat.rejection({"citty": 5}) == Rejection("", "city is required")
    assert flat.rejection({"city": 5}).path == "/city"
    assert flat.rejection({"city": "Bonn", "days": "three"}).path == "/days"
    assert flat.undeclared({"city": "Bonn", "citty": 5}) == ["citty"]
    assert flat.defaults == {"days": 3, "unit": "C"}


@pytest.mark.parametrize("key", ["parameters", "input_schema", "inputSchema"])
def test_the_schema_stands_under_the_name_of_openai_anthropic_or_mcp(key: str) -> None:
    declared = compile_tools([{"name": "t", key: {"type": "object", "properties": {"a": {"type": "integer"}}}}])["t"]
    assert declared.rejection({"a": "x"}).path == "/a"


def test_a_schema_of_an_unknown_dialect_is_broken() -> None:
    with pytest.raises(BrokenSchema):
        tool({"$schema": "https://example.org/unknown"}).rejection({})


def test_a_pattern_that_runs_away_is_undecidable() -> None:
    with pytest.raises(BrokenSchema):
        one({"pattern": r"^(?:(a|aa)+)(?<!x)\1$"}).rejection({"x": "a" * 60 + "c"})


def test_a_remote_reference_makes_no_request() -> None:
    with counting_server() as (address, requests), pytest.raises(BrokenSchema):
        one({"$ref": f"{address}/schema.json"}).rejection({"x": 1})
    assert requests == []


def test_local_references_resolve_in_schema_and_in_helpers() -> None:
    schema = {"properties": {"p": {"$ref": "#/$defs/a~1b%20c"}}, "$defs": {"a/b c": {"enum": ["day", "week"]}}}
    assert resolve("#/$defs/a~1b%20c", schema) == {"enum": ["day", "week"]}
    assert tool(schema).rejection({"p": "week"}) is None
    assert tool(schema).rejection({"p": "year"}).path == "/p"


def test_references_in_a_circle_end() -> None:
    schema = {"allOf": [{"$ref": "#"}, {"$ref": "#/allOf/1"}, {"properties": {"a": {}}}]}
    assert len(list(applicable(schema, schema))) == 4


@pytest.mark.parametrize("reference", ["#/a/0", "#/b", "#/a/9/x", "other.json", "#/n/x"])
def test_a_reference_that_leads_nowhere_is_none(reference: str) -> None:
    assert resolve(reference, {"a": [], "n": 5}) is None


def test_pointers_escape_slash_and_tilde() -> None:
    assert pointer(["a/b", 0, "m~n"]) == "/a~1b/0/m~0n"


@pytest.mark.parametrize(
    ("parameters", "undeclared"),
    [
        ({"type": "object", "properties": {"a": {}}}, ["z"]),
        ({"type": "object", "properties": {}}, ["a", "z"]),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": True}, []),
        ({"type": "object", "properties": {"a": {}}, "patternProperties": {"^z": {}}}, []),
        ({"type": "object"}, []),
        ({}, []),
        (None, []),
        ({"allOf": [{"properties": {"a": {}}}, {"$ref": "#/$defs/Z"}], "$defs": {"Z": {"properties": {"z": {}}}}}, []),
        ({"properties": {"a": {}}, "anyOf": [{"properties": {"y": {}}}]}, ["z"]),
    ],
)
def test_undeclared_arguments_are_those_that_no_part_of_a_closed_schema_names(
    parameters: Any, undeclared: list[str]
) -> None:
    assert tool(parameters).undeclared({"a": 1, "z": 2}) == undeclared


def test_required_beside_parameters_is_suspect_and_not_enforced() -> None:
    suspect = tool({"type": "dict", "properties": {"is_id": {"type": "str"}}}, required=["is_id"])
    assert suspect.is_suspect
    assert suspect.rejection({}) is None


def test_only_places_that_hold_schemas_are_mapped() -> None:
    schema = {
        "properties": {"type": {"type": "str", "enum": ["str", "dict"], "default": {"type": "dict"}}},
        "items": {"type": "int"},
        "anyOf": [{"type": "bool"}],
    }
    assert with_json_types(schema) == {
        "properties": {"type": {"type": "string", "enum": ["str", "dict"], "default": {"type": "dict"}}},
        "items": {"type": "integer"},
        "anyOf": [{"type": "boolean"}],
    }


def test_equal_declarations_are_compiled_once() -> None:
    first = compile_tools([{"type": "function", "function": {"name": "a", "parameters": {}}}])
    again = compile_tools([{"type": "function", "function": {"name": "a", "parameters": {}}}, {"name": "b"}])
    assert first["a"] is again["a"]


def test_the_first_of_two_tools_of_one_name_counts() -> None:
    tools = compile_tools([{"name": "a", "parameters": {"required": ["x"]}}, {"name": "a", "parameters": {}}])
    assert tools["a"].rejection({}) is not None


@contextmanager
def counting_server() -> Iterator[tuple[str, list[str]]]:
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
