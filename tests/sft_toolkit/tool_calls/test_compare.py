"""The same call: canonical forms against worked examples, properties, and an independent reference."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import permutations
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.conversation import ToolCall
from sft_toolkit.tool_calls import same_call, same_calls
from sft_toolkit.tool_calls.compare import canonical, difference

NOTHING: list[dict[str, Any]] = []


def declared(**properties: Any) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "t", "parameters": {"type": "object", "properties": properties}}}]


def call(arguments: Any, name: str = "t") -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ('{"x": 16.2}', '{"x": 16.20}'),
        ('{"x": 16.2}', '{"x": 1.62e1}'),
        ('{"x": 5}', '{"x": 5.0}'),
        ('{"x": 5}', '{"x": 5e0}'),
        ('{"x": 0}', '{"x": -0.0}'),
        ('{"x": 2512292042121000001}', '{"x": 2.512292042121000001e18}'),
        ('{"x": 1e400}', '{"x": 10e399}'),
        ('{"a": 1, "b": [1, {"c": null}]}', '{ "b":[1.0,{"c":null}],"a":1 }'),
        ('{"x": "K\\u00f6ln"}', '{"x": "Ko\\u0308ln"}'),
        ('{"gr\\u00f6\\u00dfe": 1}', '{"gro\\u0308\\u00dfe": 1}'),
        ("", "{}"),
        (None, " "),
        ('"{\\"x\\": 1}"', {"x": 1}),
        ({"x": 16.2}, {"x": Decimal("16.2")}),
        ("[5", "[5"),
    ],
)
def test_the_same_call_in_two_spellings(a: Any, b: Any) -> None:
    assert same_call(call(a), call(b), NOTHING)
    assert difference(call(a), call(b), NOTHING) == []


@pytest.mark.parametrize(
    ("a", "b", "where"),
    [
        ('{"x": 2512292042121000001}', '{"x": 2512292042121000000}', "/arguments/x"),
        ('{"x": 16.2}', '{"x": 16.200000000000000000001}', "/arguments/x"),
        ('{"x": 1}', '{"x": true}', "/arguments/x"),
        ('{"x": 0}', '{"x": false}', "/arguments/x"),
        ('{"x": 1}', '{"x": "1"}', "/arguments/x"),
        ('{"x": ""}', '{"x": null}', "/arguments/x"),
        ('{"x": null}', "{}", "/arguments/x"),
        ('{"x": "Ab-1"}', '{"x": "ab-1"}', "/arguments/x"),
        ('{"x": "a"}', '{"x": "a "}', "/arguments/x"),
        ('{"x": [1, 2]}', '{"x": [2, 1]}', "/arguments/x/0"),
        ('{"x": [1]}', '{"x": [1, 1]}', "/arguments/x"),
        ('{"x": []}', '{"x": {}}', "/arguments/x"),
        ('{"x": [{"a/b": 1}]}', '{"x": [{"a/b": 2}]}', "/arguments/x/0/a~1b"),
        ("[5", "[5 ", "/arguments"),
        ("[5", "{}", "/arguments"),
    ],
)
def test_two_calls_that_differ_and_where(a: Any, b: Any, where: str) -> None:
    assert not same_call(call(a), call(b), NOTHING)
    assert where in difference(call(a), call(b), NOTHING)


@pytest.mark.parametrize("other", ["T", "t ", "tool.t"])
def test_names_are_exact(other: str) -> None:
    assert not same_call(call({}), call({}, other), NOTHING)
    assert difference(call({}), call({"x": 1}, other), NOTHING) == ["/name"]


def test_every_place_of_difference_is_named() -> None:
    a, b = call({"x": 1, "y": [1, {"z": 2}]}), call({"w": 1, "y": [1, {"z": 3}]})
    assert difference(a, b, NOTHING) == ["/arguments/w", "/arguments/x", "/arguments/y/1/z"]


def test_a_tool_call_of_a_record_and_a_plain_mapping_compare_and_ids_do_not() -> None:
    assert same_call(ToolCall("t", {"x": 5}, id="c1"), call('{"x": 5.0}'), NOTHING)
    assert same_call(ToolCall("t", "[5", problem="not JSON"), call("[5"), NOTHING)


def test_top_level_defaults_are_filled_on_both_sides() -> None:
    tools = declared(city={"type": "string"}, unit={"type": "string", "default": "celsius"}, n={"default": 2})
    assert same_call(call({"city": "Ulm"}), call({"city": "Ulm", "unit": "celsius"}), tools)
    assert same_call(call({"city": "Ulm", "n": Decimal("2.0")}), call({"city": "Ulm", "unit": "celsius"}), tools)
    assert not same_call(call({"city": "Ulm"}), call({"city": "Ulm", "unit": "kelvin"}), tools)


@pytest.mark.parametrize(("own", "filled"), [({}, "c"), ({"default": "k"}, "k"), ({"default": None}, None)])
def test_a_default_may_stand_where_a_property_refers_to_but_its_own_comes_first(
    own: dict[str, Any], filled: str | None
) -> None:
    tools = declared(unit={"$ref": "#/$defs/Unit", **own})
    tools[0]["function"]["parameters"]["$defs"] = {"Unit": {"type": "string", "default": "c"}}
    for unit in ("c", "k"):
        assert same_call(call("{}"), call({"unit": unit}), tools) == (unit == filled)


def test_defaults_of_a_branch_that_need_not_apply_are_not_filled() -> None:
    sometimes = {"type": "object", "anyOf": [{"properties": {"unit": {"default": "c"}}}, {}]}
    tools = [{"name": "t", "parameters": sometimes}]
    assert not same_call(call({}), call({"unit": "c"}), tools)


def test_nested_defaults_are_not_filled() -> None:
    tools = declared(o={"type": "object", "properties": {"u": {"default": 1}}})
    assert not same_call(call({"o": {}}), call({"o": {"u": 1}}), tools)


@pytest.mark.parametrize(
    ("schema", "same"),
    [
        ({"type": ["string", "null"]}, True),
        ({"type": ["string", "null"], "default": None}, True),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        ({"enum": ["a", None]}, True),
        ({"$ref": "#/properties/other"}, True),
        ({"type": "any"}, True),
        ({"type": ["string", "null"], "default": "a"}, False),
        ({"type": "string"}, False),
        ({"type": "string", "default": None}, False),
        ({"enum": ["a"]}, False),
    ],
)
def test_null_equals_missing_only_where_null_is_allowed_and_the_default_is_absent_or_null(
    schema: Any, same: bool
) -> None:
    tools = declared(x=schema, other={"type": ["integer", "null"]}, needed={"type": "integer"})
    assert same_call(call({"x": None}), call({}), tools) is same


def test_an_undeclared_null_differs_from_missing() -> None:
    assert not same_call(call({"y": None}), call({}), declared(x={}))


UNIQUE = {"type": "array", "uniqueItems": True, "items": {"type": "integer"}}


@pytest.mark.parametrize(
    ("schema", "wrap"),
    [
        (UNIQUE, lambda items: items),
        ({"$ref": "#/properties/spare"}, lambda items: items),
        ({"anyOf": [{"type": "null"}, UNIQUE]}, lambda items: items),
        ({"allOf": [{"minItems": 1}, UNIQUE]}, lambda items: items),
        ({"type": "object", "properties": {"deep": UNIQUE}}, lambda items: {"deep": items}),
        ({"type": "object", "additionalProperties": UNIQUE}, lambda items: {"any": items}),
        ({"type": "array", "items": UNIQUE}, lambda items: [[9], items]),
        ({"type": "array", "prefixItems": [{"type": "string"}, UNIQUE]}, lambda items: ["a", items]),
        ({"type": "array", "items": {"$ref": "#/properties/spare"}}, lambda items: [items]),
    ],
)
def test_order_does_not_matter_where_the_schema_says_unique_items(schema: Any, wrap: Any) -> None:
    tools = declared(x=schema, spare=UNIQUE)
    assert same_call(call({"x": wrap([1, 2, 3])}), call({"x": wrap([3, 1, 2])}), tools)
    assert not same_call(call({"x": wrap([1, 2, 3])}), call({"x": wrap([3, 1, 4])}), tools)
    assert not same_call(call({"x": wrap([1, 1, 2])}), call({"x": wrap([1, 2, 2])}), tools)


def test_order_matters_around_an_unordered_array() -> None:
    tools = declared(x={"type": "array", "items": UNIQUE})
    assert not same_call(call({"x": [[1], [2]]}), call({"x": [[2], [1]]}), tools)


def test_an_unordered_array_differs_as_a_whole() -> None:
    assert difference(call({"x": [1, 2]}), call({"x": [2, 3]}), declared(x=UNIQUE)) == ["/arguments/x"]


def test_parallel_calls_match_as_multisets() -> None:
    ulm, bonn = call({"city": "Ulm"}), call({"city": "Bonn"})
    assert same_calls([ulm, bonn], [bonn, ulm], NOTHING)
    assert not same_calls([ulm, bonn], [ulm, ulm], NOTHING)
    assert not same_calls([ulm], [ulm, ulm], NOTHING)
    assert same_calls([], [], NOTHING)


def test_keys_that_fall_together_under_nfc_stay_apart() -> None:
    both = {"\u00e9": 1, "e\u0301": 2}
    assert same_call(call(both), call(dict(reversed(both.items()))), NOTHING)
    assert not same_call(call(both), call({"\u00e9": 2, "e\u0301": 1}), NOTHING)


def test_numbers_that_are_none_still_equal_themselves() -> None:
    for number in (float("nan"), float("inf"), Decimal("NaN")):
        assert same_call(call({"x": number}), call({"x": number}), NOTHING)
    assert not same_call(call({"x": float("inf")}), call({"x": float("-inf")}), NOTHING)


def test_numbers_too_large_to_write_out_compare_at_once() -> None:
    assert same_call(call('{"x": 1e999999999999}'), call('{"x": 10e999999999998}'), NOTHING)
    assert not same_call(call('{"x": 1e999999999999}'), call('{"x": 1e999999999998}'), NOTHING)


numbers = st.integers() | st.decimals(allow_nan=False, allow_infinity=False)
texts = st.text(alphabet="abAB1 äö\u0308\u212b", max_size=4)
scalars = st.none() | st.booleans() | numbers | st.sampled_from([0, 1, Decimal("1.0")]) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)
objects = st.dictionaries(texts, values, max_size=3)
small_calls = st.builds(
    call,
    st.dictionaries(st.sampled_from("xy"), st.sampled_from([0, 1, True, "1", None, Decimal("1.0"), [0, 1], [1, 0]])),
    st.sampled_from("tu"),
)
small_tools = st.sampled_from(
    [NOTHING, declared(x=UNIQUE, y={"default": 1}), declared(x={"type": ["integer", "null"]}, y={"type": "any"})]
)


@given(small_calls, small_calls, small_calls, small_tools)
def test_sameness_is_an_equivalence_relation(a: Any, b: Any, c: Any, tools: Any) -> None:
    assert same_call(a, a, tools)
    assert same_call(a, b, tools) is same_call(b, a, tools)
    if same_call(a, b, tools) and same_call(b, c, tools):
        assert same_call(a, c, tools)


@given(small_calls, small_calls, small_tools)
def test_a_difference_is_named_exactly_where_calls_are_not_the_same(a: Any, b: Any, tools: Any) -> None:
    assert (difference(a, b, tools) == []) is same_call(a, b, tools)
    assert difference(a, b, tools) == difference(b, a, tools)


@given(objects, objects)
def test_sameness_equals_the_naive_definition(a: Any, b: Any) -> None:
    assert same_call(call(a), call(b), NOTHING) is naively_equal(a, b)


@given(objects, st.randoms(use_true_random=False))
def test_key_order_and_number_spelling_do_not_matter(arguments: Any, chance: random.Random) -> None:
    assert same_call(call(arguments), call(spelled(arguments, chance)), NOTHING)
    assert hash(canonical(call(arguments), NOTHING)) == hash(canonical(call(spelled(arguments, chance)), NOTHING))


@given(st.lists(small_calls, max_size=4), st.lists(small_calls, max_size=4))
def test_parallel_matching_equals_trying_every_permutation(as_: Any, bs: Any) -> None:
    by_hand = len(as_) == len(bs) and any(all(map(naively_equal, as_, order)) for order in permutations(bs))
    assert same_calls(as_, bs, NOTHING) is by_hand


def naively_equal(a: Any, b: Any) -> bool:
    """The rules again, without canonical forms: pairwise, numbers as fractions."""
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return a is b
    if isinstance(a, str) and isinstance(b, str):
        return normalize("NFC", a) == normalize("NFC", b)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(naively_equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        a, b = with_nfc_keys(a), with_nfc_keys(b)
        return a.keys() == b.keys() and all(naively_equal(a[key], b[key]) for key in a)
    if isinstance(a, (int, Decimal)) and isinstance(b, (int, Decimal)):
        return Fraction(a) == Fraction(b)
    return False


def with_nfc_keys(value: dict[str, Any]) -> dict[str, Any]:
    composed = {normalize("NFC", key): item for key, item in value.items()}
    return composed if len(composed) == len(value) else value


def spelled(value: Any, chance: random.Random) -> str:
    """JSON text of a value in another spelling: shuffled keys, numbers with exponents and trailing zeros, NFD text."""
    if isinstance(value, dict):
        members = list(value.items())
        chance.shuffle(members)
        composed = {normalize("NFC", key) for key in value}
        respell = composed_or_not(chance) if len(composed) == len(value) else str
        named = ((respell(key), item) for key, item in members)
        return "{" + " , ".join(f"{json.dumps(key)}:{spelled(item, chance)}" for key, item in named) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(spelled(item, chance) for item in value) + "]"
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return number_spelled(Decimal(value), chance.randrange(4))
    if isinstance(value, str):
        return json.dumps(composed_or_not(chance)(value))
    return json.dumps(value)


def composed_or_not(chance: random.Random) -> Callable[[str], str]:
    return partial(normalize, "NFC") if chance.random() < 0.5 else partial(normalize, "NFD")


def number_spelled(number: Decimal, zeros: int) -> str:
    sign, digits, exponent = number.as_tuple()
    mantissa = "".join(map(str, digits)).lstrip("0") or "0"
    return f"{'-' * sign}{mantissa}.{'0' * (zeros + 1)}e{exponent}"
