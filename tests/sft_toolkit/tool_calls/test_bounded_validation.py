"""Validation with bounded work says what native validation says, also of schemas that native code cannot bear."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from sft_toolkit.formats import parse_record
from sft_toolkit.tool_calls.bounded_validation import BoundedValidator
from sft_toolkit.tool_calls.compiling import LARGE, expanded_size
from sft_toolkit.tool_calls.judge import Judge, Judgement
from sft_toolkit.tool_calls.native_validation import TooMuchWork, weight
from sft_toolkit.tool_calls.schema import BrokenSchema, Tool, compile_tools

HOSTILE = Path(__file__).parents[2] / "cases" / "hostile"
NAMES = ("a", "b", "c")


def any_value(draw: random.Random, depth: int) -> Any:
    kind = draw.randrange(8 if depth else 5)
    if kind < 5:
        return (draw.randrange(3), draw.choice(NAMES), draw.random() < 0.5, None, 1.5)[kind]
    if kind < 7:
        return {name: any_value(draw, depth - 1) for name in NAMES if draw.random() < 0.6}
    return [any_value(draw, depth - 1) for _ in range(draw.randrange(3))]


def any_schema(draw: random.Random, depth: int) -> Any:
    """A schema of a few keywords of each kind, with references to the definitions d0 to d2."""
    if draw.random() < 0.1:
        return draw.random() < 0.7
    inner = (lambda: any_schema(draw, depth - 1)) if depth else (lambda: draw.choice(({}, {"type": "integer"}, True)))
    several = lambda: [inner() for _ in range(draw.randrange(1, 4))]  # noqa: E731
    keywords: dict[str, Any] = {
        "type": draw.choice(("object", "string", "integer", ["array", "object"], ["string", "null"])),
        "enum": [0, "a", None, {"a": 1}],
        "const": 1,
        "minimum": 1,
        "minLength": 1,
        "required": draw.sample(NAMES, 1),
        "maxProperties": 2,
        "uniqueItems": True,
        "minItems": 1,
        "properties": {name: inner() for name in NAMES if draw.random() < 0.5},
        "patternProperties": {"^[ab]$": inner()},
        "additionalProperties": inner(),
        "propertyNames": {"enum": ["a", "b"]},
        "dependentSchemas": {"a": inner()},
        "items": inner(),
        "prefixItems": several(),
        "contains": inner(),
        "allOf": several(),
        "anyOf": several(),
        "oneOf": several(),
        "not": inner(),
        "if": inner(),
        "$ref": f"#/$defs/d{draw.randrange(3)}",
    }
    chosen = {keyword: keywords[keyword] for keyword in draw.sample(sorted(keywords), draw.randrange(1, 4))}
    if "if" in chosen:
        chosen |= {"then": inner(), "else": inner()}
    if "contains" in chosen:
        chosen |= {"maxContains": 1} if draw.random() < 0.5 else {"minContains": 0}
    return chosen


def test_it_agrees_with_native_validation_on_schemas_and_values_of_all_kinds() -> None:
    draw = random.Random(7)
    judged = {True: 0, False: 0}
    for _ in range(150):
        schema = {**any_value_of_object(draw), "$defs": {f"d{number}": any_schema(draw, 1) for number in range(3)}}
        if expanded_size(schema) is None:
            continue
        native = jsonschema_rs.validator_for(schema)
        bounded = BoundedValidator(schema)
        for _ in range(5):
            value = any_value(draw, 3)
            error = bounded.error(value)
            assert (error is None) == native.is_valid(value), (schema, value, error)
            judged[error is None] += 1
    assert min(judged.values()) > 100


def any_value_of_object(draw: random.Random) -> dict[str, Any]:
    schema = any_schema(draw, 2)
    return schema if isinstance(schema, dict) else {"not": {"type": "null"}}


EXPRESSION = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"op": {"enum": operators}, "left": {"$ref": "#/$defs/e"}, "right": {"$ref": "#/$defs/e"}},
            "required": ["op", "left", "right"],
        }
        for operators in (["add"], ["mul"])
    ]
    + [{"type": "number"}],
}
AMBIGUOUS = {"anyOf": [{"properties": {"left": {"$ref": "#/$defs/e"}}, "required": [key]} for key in ("left", "op")]}


def nested(depth: int, leaf: Any) -> Any:
    value = leaf
    for level in range(depth):
        value = {"op": ("add", "mul")[level % 2], "left": value, "right": 1}
    return value


@pytest.mark.parametrize("schema", [EXPRESSION, {**AMBIGUOUS, "type": "object"}])
@pytest.mark.parametrize("depth", [3, 14, 100])
def test_a_recursive_schema_costs_the_same_with_each_level(schema: Any, depth: int) -> None:
    tool = compile_tools(
        [{"name": "f", "parameters": {"properties": {"e": {"$ref": "#/$defs/e"}}, "$defs": {"e": schema}}}]
    )["f"]
    begin = time.process_time()
    rejection = tool.rejection({"e": nested(depth, "x")})
    assert rejection is not None and rejection.path.startswith("/e")
    assert time.process_time() - begin < 1
    if schema is EXPRESSION:
        assert rejection.path == "/e" + "/left" * depth
        assert rejection.message == "x does not satisfy anyOf"
        assert tool.rejection({"e": nested(depth, 2)}) is None


def hostile(name: str) -> Judgement:
    return Judge().judge(parse_record(json.loads((HOSTILE / f"{name}.jsonl").read_text())))


@pytest.mark.parametrize("name", ["schema_expression_depth10", "schema_expression_depth14"])
def test_one_wrong_leaf_of_an_expression_is_named_in_milliseconds(name: str) -> None:
    begin = time.process_time()
    (verdict,) = hostile(name).verdicts
    assert time.process_time() - begin < 1
    assert verdict.fault.reason == "invalid_arguments"
    assert len(verdict.fault.detail) < 200 and "/expr/left/left" in verdict.fault.detail


def doubling(count: int, keyword: str = "allOf", leaf: Any = None) -> dict[str, Any]:
    """Definitions, each of which refers to the next twice."""
    definitions: dict[str, Any] = {
        f"d{number}": {keyword: [{"$ref": f"#/$defs/d{number + 1}"}] * 2} for number in range(count)
    }
    return {"$defs": {**definitions, f"d{count}": leaf or {"type": "object"}}, "$ref": "#/$defs/d0"}


def test_references_that_double_are_decided_once_each() -> None:
    assert not hostile("schema_doubling_refs").verdicts
    for keyword in ("allOf", "anyOf"):
        for count in (5, 40, 90):
            bounded = BoundedValidator(doubling(count, keyword))
            assert bounded.error({}) is None and bounded.error(5) is not None
    assert expanded_size(doubling(5)) is not None
    assert expanded_size(doubling(40)) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#"}]}}},
        {"properties": {"a": {"$ref": "#"}}, "unevaluatedProperties": False},
        {"properties": {"a": {"$dynamicRef": "#x"}, "b": {"$ref": "#"}}},
        {"properties": {"a": {"$id": "other", "$ref": "#"}, "b": {"$ref": "#"}}},
        doubling(60, leaf={"properties": {"a": {"additionalProperties": {"pattern": r"^(?:(a|aa)+)(?<!x)\1$"}}}}),
    ],
)
def test_what_cannot_be_decided_within_bounds_is_undecidable(schema: Any) -> None:
    (tool,) = compile_tools([{"name": "f", "parameters": {"type": "object", **schema}}]).values()
    begin = time.process_time()
    with pytest.raises(BrokenSchema):
        tool.rejection({"a": {"a": "a" * 60 + "c"}})
    assert time.process_time() - begin < 5


def test_many_branches_and_many_values_are_bounded_together() -> None:
    branches = [{"properties": {"n": {"const": number}}, "required": ["n"]} for number in range(1_000)]
    tool = compile_tools([{"name": "f", "parameters": {"properties": {"a": {"items": {"anyOf": branches}}}}}])["f"]
    assert tool.rejection({"a": [{"n": 2}, {"n": 1_001}]}).path == "/a/1"
    begin = time.process_time()
    with pytest.raises(BrokenSchema):
        tool.rejection({"a": [{"n": 999} for _ in range(10_000)]})
    assert time.process_time() - begin < 20


@pytest.mark.parametrize("keyword", ["items", "not", "additionalProperties"])
def test_a_schema_that_nests_deeply_is_broken_whatever_the_depth_of_the_stack(keyword: str) -> None:
    schema: Any = {"type": "integer"}
    for _ in range(5_000):
        schema = {keyword: schema}
    with pytest.raises(BrokenSchema):
        Tool("f", {"parameters": schema}).rejection({"a": 1})


def test_a_chain_of_references_may_be_long() -> None:
    assert BoundedValidator(doubling(5_000)).error(5) == ("", '5 is not of type "object"')
    assert Tool("f", {"parameters": doubling(5_000)}).rejection({}) is None


def test_work_is_weighed_by_values_and_by_letters() -> None:
    assert weight({"a": [1, 2, 3]}) == 5
    assert weight("x" * 1_000) == 11
    assert weight([0] * 10_000, most=10) <= 12
    assert LARGE > 1_000


def test_a_bound_is_reported_as_too_much_work() -> None:
    with pytest.raises(TooMuchWork):
        BoundedValidator({"items": {"const": list(range(1_000))}}).error([list(range(1_000)) for _ in range(200)])
