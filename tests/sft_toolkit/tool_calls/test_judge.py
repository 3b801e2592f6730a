"""Which calls are judged bad, one rule at a time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sft_toolkit.formats import parse_record
from sft_toolkit.json_text import encode_text
from sft_toolkit.tool_calls import same_call
from sft_toolkit.tool_calls.compare import difference
from sft_toolkit.tool_calls.judge import Fault, Judge, Judgement
from sft_toolkit.tool_calls.results import compile_patterns

LIMIT = "Error: limit"
PAY: dict[str, Any] = {
    "name": "pay",
    "parameters": {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]},
}
ASK = {"name": "ask", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}


def calls(*named: tuple[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"function": {"name": name, "arguments": arguments}} for name, arguments in named],
        **more,
    }


def pay(amount: Any = 5, **more: Any) -> dict[str, Any]:
    return calls(("pay", {"sum": amount}), **more)


def user(text: str = "…") -> dict[str, Any]:
    return {"role": "user", "content": text}


def result(content: str, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content, **more}


def judged(*messages: dict[str, Any], tools: Any = (PAY, ASK), **rules: Any) -> Judgement:
    record = {"id": "1", "messages": [user(), *messages], "tools": list(tools)}
    return Judge(**rules).judge(parse_record(record))


def bad(judgement: Judgement) -> dict[int, str]:
    return {verdict.turn: verdict.fault.reason for verdict in judgement.verdicts}


def test_the_bakery_masks_the_text_and_trains_the_number() -> None:
    """Section on loss masking of the report: betrag "16.20" (text) is masked, the following 16.2 is not."""
    tool = {
        "type": "function",
        "function": {
            "name": "buche_einnahme",
            "parameters": {"type": "object", "properties": {"betrag": {"type": "number"}}, "required": ["betrag"]},
        },
    }
    judgement = judged(
        calls(("buche_einnahme", '{"betrag": "16.20"}')),
        result("Fehler: betrag muss eine Zahl sein"),
        calls(("buche_einnahme", '{"betrag": 16.2}')),
        result("gebucht"),
        tools=[tool],
    )
    (verdict,) = judgement.verdicts
    assert (verdict.turn, verdict.calls) == (1, (0,))
    assert verdict.fault == Fault(
        "invalid_arguments", 'buche_einnahme at /betrag: "16.20" is not of type "number"', path="/betrag"
    )


def test_an_undeclared_tool_is_unknown_and_the_nearest_name_is_suggested() -> None:
    (verdict,) = judged(calls(("Pays", {}))).verdicts
    assert verdict.fault == Fault("unknown_tool", "Pays is not declared; did you mean pay?", suggestion="pay")


def test_a_name_that_nothing_is_near_gets_no_suggestion() -> None:
    (verdict,) = judged(calls(("xyzzy", {}))).verdicts
    assert verdict.fault == Fault("unknown_tool", "xyzzy is not declared")


def test_without_declared_tools_only_what_needs_none_is_judged() -> None:
    judgement = judged(
        pay("5"), result("ok"), calls(("pay", "{")), pay(7), result(LIMIT), pay(7), result(LIMIT), tools=[]
    )
    assert bad(judgement) == {3: "invalid_arguments", 6: "repeat_of_failed_call"}
    assert judgement.notes["undecidable_no_tools"] == 1


def test_a_conversation_without_calls_is_not_undecidable() -> None:
    assert judged({"role": "assistant", "content": "5"}, tools=[]).notes == {}


def test_one_bad_call_in_a_parallel_turn_convicts_the_turn_by_its_first_fault() -> None:
    judgement = judged(calls(("pay", {"sum": 5}), ("pay", {}), ("nope", {})))
    (verdict,) = judgement.verdicts
    assert (verdict.calls, verdict.fault.detail) == ((1, 2), "pay: sum is required")
    assert judgement.notes["masked_invalid_arguments"] == 1
    assert judgement.notes["masked_unknown_tool"] == 0
    assert judgement.notes["tool_calls"] == 3


def test_a_valid_call_that_merely_failed_is_kept_and_so_is_the_correction() -> None:
    assert bad(judged(pay(5), result(LIMIT), pay(4), result("ok"))) == {}


def test_arguments_nested_without_end_are_invalid_not_a_crash() -> None:
    endless: dict[str, Any] = {}
    for _ in range(700):
        endless = {"a": endless}
    assert bad(judged(calls(("pay", endless)))) == {1: "invalid_arguments"}
    assert bad(judged(calls(("pay", '{"a":' * 700 + "1" + "}" * 700)))) == {1: "invalid_arguments"}


def test_a_call_cut_off_by_the_length_limit_is_invalid_and_only_the_last_of_its_turn() -> None:
    (verdict,) = judged(calls(("ask", {}), ("pay", {"sum": 5}), finish_reason="length")).verdicts
    assert (verdict.calls, verdict.fault.reason) == ((1,), "invalid_arguments")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ('{"error": {"code": -32601, "message": "Method not found"}}', "unknown_tool"),
        ('{"error": {"code": -32602, "message": "Invalid params"}}', "invalid_arguments"),
        ("MCP error -32602: sum must be positive", "invalid_arguments"),
    ],
)
def test_the_environment_may_report_what_the_schema_lets_pass(answer: str, reason: str) -> None:
    judgement = judged(pay(-5), result(answer))
    assert bad(judgement) == {1: reason}
    assert judgement.verdicts[0].fault.detail == f"the environment answered: {answer}"


def test_configured_words_of_the_environment_report_too() -> None:
    rules = {
        "unknown_tool": compile_patterns("", ["Kein Werkzeug"]),
        "invalid_arguments": compile_patterns("", ["Ungültig"]),
    }
    messages = [pay(1), result("Kein Werkzeug pay"), pay(2), result("Ungültig: sum"), pay(3), result("War Ungültig")]
    assert bad(judged(*messages, **rules)) == {1: "unknown_tool", 3: "invalid_arguments"}
    assert bad(judged(*messages)) == {}


class TestUndeclaredArguments:
    EXTRA = calls(("pay", {"sum": 5, "verbose": True}))

    def test_they_are_invalid_where_the_environment_failed_or_is_silent(self) -> None:
        for messages in ([self.EXTRA, result("Error: unexpected keyword verbose")], [self.EXTRA]):
            (verdict,) = judged(*messages).verdicts
            assert (verdict.fault.reason, verdict.fault.path) == ("invalid_arguments", "/verbose")

    def test_they_are_trained_and_counted_where_the_environment_answered(self) -> None:
        judgement = judged(self.EXTRA, result("booked"))
        assert bad(judgement) == {}
        assert judgement.notes["extra_arguments"] == 1

    def test_an_option_lets_them_pass_altogether(self) -> None:
        judgement = judged(self.EXTRA, result(LIMIT), allow_extra_arguments=True)
        assert bad(judgement) == {}

    def test_a_schema_that_states_additional_properties_decides_itself(self) -> None:
        def stating(value: bool) -> Any:
            return [{"name": "pay", "parameters": {**PAY["parameters"], "additionalProperties": value}}]

        assert bad(judged(self.EXTRA, tools=stating(True))) == {}
        assert bad(judged(self.EXTRA, result("booked"), tools=stating(False))) == {1: "invalid_arguments"}


def test_a_broken_schema_is_counted_and_the_call_kept() -> None:
    broken = {"name": "pay", "parameters": {"type": "object", "properties": {"sum": {"type": "nummer"}}}}
    judgement = judged(calls(("pay", {"sum": 5, "more": 1})), tools=[broken])
    assert bad(judgement) == {}
    assert judgement.notes["undecidable_broken_schema"] == 1


def test_required_beside_the_parameters_is_counted_and_not_enforced() -> None:
    suspect = {"name": "pay", "parameters": {"type": "dict", "properties": {}}, "required": ["sum"]}
    judgement = judged(calls(("pay", {})), tools=[suspect])
    assert bad(judgement) == {}
    assert judgement.notes["suspect_schema"] == 1


class TestRepeats:
    def test_the_same_call_that_fails_again_with_the_same_text_is_bad(self) -> None:
        judgement = judged(calls(("pay", '{"sum": 5}')), result(LIMIT), calls(("pay", '{ "sum": 5.0 }')), result(LIMIT))
        (verdict,) = judgement.verdicts
        assert verdict.turn == 3
        assert verdict.fault == Fault("repeat_of_failed_call", "pay repeats message 1, which failed", of=1)

    def test_every_further_repeat_is_bad_and_names_the_latest(self) -> None:
        judgement = judged(*[pay(), result(LIMIT)] * 3)
        assert [(verdict.turn, verdict.fault.of) for verdict in judgement.verdicts] == [(3, 1), (5, 3)]

    def test_other_calls_between_do_not_matter(self) -> None:
        between = [calls(("ask", {})), result("ok")]
        assert bad(judged(pay(), result(LIMIT), *between, pay(), result(LIMIT))) == {5: "repeat_of_failed_call"}

    @pytest.mark.parametrize("second", ["ok", "Error: timeout"])
    def test_a_repeat_that_succeeds_or_fails_in_a_new_way_is_trained_unless_strict(self, second: str) -> None:
        messages = [pay(), result(LIMIT), pay(), result(second)]
        assert bad(judged(*messages)) == {}
        assert bad(judged(*messages, repeats="strict")) == {3: "repeat_of_failed_call"}

    def test_a_repeat_without_a_result_is_trained_unless_strict(self) -> None:
        messages = [pay(), result(LIMIT), pay()]
        assert bad(judged(*messages)) == {}
        assert bad(judged(*messages, repeats="strict")) == {3: "repeat_of_failed_call"}

    def test_only_the_latest_occurrence_counts(self) -> None:
        messages = [pay(), result(LIMIT), pay(), result("ok"), pay(), result(LIMIT)]
        assert bad(judged(*messages)) == {}
        assert bad(judged(*messages, repeats="strict")) == {3: "repeat_of_failed_call"}

    def test_a_repeat_of_a_call_that_succeeded_is_no_fault(self) -> None:
        assert bad(judged(pay(), result("ok"), pay(), result(LIMIT), repeats="strict")) == {}

    def test_a_user_round_forgets_only_where_asked(self) -> None:
        messages = [pay(), result(LIMIT), user("try again"), pay(), result(LIMIT), pay(), result(LIMIT)]
        default = judged(*messages)
        assert bad(default) == {4: "repeat_of_failed_call", 6: "repeat_of_failed_call"}
        assert default.notes["masked_repeat_after_user_message"] == 1
        by_round = judged(*messages, repeats="user-round")
        assert bad(by_round) == {6: "repeat_of_failed_call"}
        assert by_round.notes["masked_repeat_after_user_message"] == 0

    def test_the_same_call_twice_in_one_turn_is_no_repeat(self) -> None:
        twice = calls(("pay", {"sum": 5}), ("pay", {"sum": 5}))
        assert bad(judged(twice, result(LIMIT), result(LIMIT))) == {}

    def test_results_that_do_not_pair_are_counted_and_decide_nothing(self) -> None:
        twice = calls(("pay", {"sum": 5}), ("ask", {}))
        judgement = judged(twice, result(LIMIT), pay(), result(LIMIT))
        assert bad(judgement) == {}
        assert judgement.notes["undecidable_unpaired_results"] == 1

    def test_configured_words_make_a_failure(self) -> None:
        messages = [pay(), result("Fehler: Limit")] * 2
        assert bad(judged(*messages)) == {}
        pattern = compile_patterns("failure_patterns", ["Fehler"])
        assert bad(judged(*messages, failure=pattern)) == {3: "repeat_of_failed_call"}

    def test_invalid_repeats_are_named_invalid(self) -> None:
        assert bad(judged(*[pay("5"), result(LIMIT)] * 2)) == {1: "invalid_arguments", 3: "invalid_arguments"}


SCHEMA_WORDS = [
    "type",
    "properties",
    "items",
    "allOf",
    "anyOf",
    "$ref",
    "$defs",
    "enum",
    "required",
    "default",
    "a",
    "b",
]
keywords = st.sampled_from(
    [*SCHEMA_WORDS, "uniqueItems", "additionalProperties", "prefixItems", "pattern", "minimum", "$id"]
)
words = st.sampled_from(["object", "array", "string", "any", "dict", "#", "#/$defs/a", "#/properties/a", "(", "a", "b"])
odd = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keywords, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300)
@given(st.dictionaries(keywords, odd, max_size=4), st.dictionaries(keywords, odd, max_size=3), odd)
def test_no_declaration_or_argument_however_odd_stops_a_run(parameters: Any, arguments: Any, answer: Any) -> None:
    messages = [calls(("pay", arguments)), result(encode_text(answer)), calls(("pay", {"a": None})), result("Error")]
    tools = [{"name": "pay", "parameters": parameters}]
    assert judged(*messages, tools=tools).notes["tool_calls"] == 2
    first, second = ({"name": "pay", "arguments": given} for given in (arguments, {"a": None}))
    assert same_call(first, first, tools)
    assert (difference(first, second, tools) == []) is same_call(first, second, tools)


def test_a_detail_stays_short_however_long_the_argument() -> None:
    (verdict,) = judged(pay("5" * 100_000)).verdicts
    assert len(verdict.fault.detail) == 240
    assert verdict.fault.detail.endswith("…")
