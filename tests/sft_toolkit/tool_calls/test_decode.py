"""Arguments as records hold them, decoded once."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from sft_toolkit.json_text import encode_text
from sft_toolkit.tool_calls.decode import MAX_DEPTH, decode_arguments


@pytest.mark.parametrize("given", ["", "  \n", None, "null"])
def test_what_holds_nothing_is_an_empty_object(given: str | None) -> None:
    assert decode_arguments(given).value == {}
    assert decode_arguments(given).problem is None


def test_one_more_layer_is_peeled_if_it_holds_an_object() -> None:
    decoded = decode_arguments('"{\\"order_id\\": 77}"')
    assert decoded.value == {"order_id": 77}
    assert decoded.double_encoded


def test_a_third_layer_is_not_peeled() -> None:
    given = json.dumps(json.dumps(json.dumps({"a": 1})))
    decoded = decode_arguments(given)
    assert decoded.problem == "arguments is not an object but text"
    assert decoded.value == given


def test_text_inside_an_argument_is_never_decoded() -> None:
    assert decode_arguments('{"title": "{\\"a\\": 1}"}').value == {"title": '{"a": 1}'}


def test_every_digit_of_a_number_is_kept() -> None:
    value = decode_arguments('{"id": 2512292042121000001, "sum": 16.20}').value
    assert value == {"id": 2512292042121000001, "sum": Decimal("16.20")}
    assert encode_text(value) == '{"id":2512292042121000001,"sum":16.20}'


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("[5]", "arguments is not an object but a list"),
        ("5", "arguments is not an object but a number"),
        ("true", "arguments is not an object but a boolean"),
        ([5], "arguments is not an object but a list"),
        ('{"a": 1', "arguments is not JSON: Expecting ',' delimiter at character 7"),
        ('{"a": NaN}', "arguments is not JSON: NaN is not a JSON number"),
        ('{"a": -Infinity}', "arguments is not JSON: -Infinity is not a JSON number"),
        ('{"a": 1, "a": 2}', "duplicate key a"),
        ('{"a": {"b": 1, "b": 1}}', "duplicate key b"),
        ('{"a": "\\ud83d"}', "arguments is not JSON: it holds half of a surrogate pair"),
        ("[" * 100_000, "arguments is not JSON: nested too deeply"),
    ],
)
def test_what_is_not_an_object_is_kept_with_the_problem_beside_it(given: Any, problem: str) -> None:
    decoded = decode_arguments(given)
    assert decoded.problem == problem
    assert decoded.value is given


def test_a_number_too_large_for_a_decimal_is_a_problem_not_a_crash() -> None:
    assert decode_arguments('{"a": 1e99999999999999999999}').problem is not None


def test_a_whole_surrogate_pair_is_fine() -> None:
    assert decode_arguments('{"a": "\\ud83d\\ude00"}').value == {"a": "😀"}


def test_nesting_is_bounded_for_text_and_for_objects() -> None:
    def nested(levels: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for _ in range(levels - 1):
            value = {"a": value}
        return value

    assert decode_arguments(nested(MAX_DEPTH)).problem is None
    for given in (nested(MAX_DEPTH + 1), json.dumps(nested(MAX_DEPTH + 1))):
        assert decode_arguments(given).problem == "arguments is nested more than 128 levels deep"
