"""What a template is given: forms, ids, order of results."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.chat.messages import Dialect, prepare
from sft_toolkit.errors import RecordError
from sft_toolkit.formats import parse_record
from tests.given_messages import as_given


def prepared(messages: list[dict[str, Any]], notes: Counter[str] | None = None, **dialect: Any) -> list[dict[str, Any]]:
    return prepare(parse_record({"messages": messages}), Dialect(**dialect), Counter() if notes is None else notes)


def calling(*ids: str | None, content: Any = None) -> dict[str, Any]:
    calls = [{"id": identity, "function": {"name": "f", "arguments": '{"a": 16.20}'}} for identity in ids]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def result(identity: str | None, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identity, "content": content}


USER = {"role": "user", "content": "u"}


def test_reasoning_comes_under_every_name_that_templates_read() -> None:
    (message,) = prepared([{"role": "assistant", "content": "a", "thinking": "t"}])
    assert [message[key] for key in ("reasoning", "reasoning_content", "thinking")] == ["t", "t", "t"]


def test_absent_fields_stay_absent() -> None:
    (message,) = prepared([USER])
    assert message == {"role": "user", "content": "u"}


def test_unknown_keys_are_handed_on_but_replace_nothing() -> None:
    (message,) = prepared([{**USER, "recipient": "all"}])
    assert message == {"recipient": "all", "role": "user", "content": "u"}


def test_arguments_are_an_object_or_json_text_with_all_digits() -> None:
    _, message = prepared([USER, calling("a")])
    assert str(message["tool_calls"][0]["function"]["arguments"]["a"]) == "16.20"
    notes: Counter[str] = Counter()
    _, message = prepared([USER, calling("a")], notes, text_arguments=True)
    assert message["tool_calls"][0]["function"]["arguments"] == '{"a": 16.20}'
    assert notes == {"template_wants_string_arguments": 1}


def test_empty_content_is_null_only_for_calls_and_only_if_wanted() -> None:
    assert [message["content"] for message in prepared([USER, calling("a")])] == ["u", ""]
    assert prepared([USER, calling("a")], null_content=True)[1]["content"] is None
    assert prepared([USER, calling("a", content="c")], null_content=True)[1]["content"] == "c"


def test_text_is_wrapped_for_a_template_of_parts_and_parts_are_joined_for_one_of_text() -> None:
    parts = [{"type": "text", "text": "b"}, {"type": "text", "text": " c"}]
    messages = [USER, {"role": "assistant", "content": parts}]
    assert [message["content"] for message in prepared(messages)] == ["u", "b c"]
    given = prepare(as_given(messages), Dialect(parts=True), Counter())
    assert [message["content"] for message in given] == [[{"type": "text", "text": "u"}], parts]


@pytest.mark.parametrize(("kind", "reason"), [("image_url", "image_part"), ("input_audio", "unsupported_part")])
def test_parts_that_are_not_text_are_refused(kind: str, reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        prepared([{"role": "user", "content": [{"type": kind}]}])
    assert caught.value.reason == reason


def test_results_stand_in_the_order_of_their_calls() -> None:
    notes: Counter[str] = Counter()
    messages = [USER, calling("a", "b", "c"), result("c", "3"), result("a", "1"), result("b", "2"), USER]
    contents = [message["content"] for message in prepared(messages, notes)]
    assert contents == ["u", "", "1", "2", "3", "u"]
    assert notes == {"tool_results_reordered": 1}


@pytest.mark.parametrize(
    "messages",
    [
        [USER, calling("a", "b"), result("b", "2")],
        [USER, calling("a", "a"), result("a", "1"), result("a", "2")],
        [USER, calling(None, None), result(None, "1"), result(None, "2")],
        [USER, calling("a", "b"), result("a", "1"), result("b", "2")],
    ],
)
def test_incomplete_or_ambiguous_results_are_left_as_they_stand(messages: list[dict[str, Any]]) -> None:
    notes: Counter[str] = Counter()
    contents = [message["content"] for message in prepared(messages, notes)]
    assert contents[2:] == [message["content"] for message in messages[2:]]
    assert not notes


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=8, unique=True))
def test_short_ids_are_nine_letters_or_digits_unique_and_the_same_for_call_and_result(ids: list[str]) -> None:
    messages = [USER, calling(*ids), *(result(identity, "r") for identity in ids)]
    _, call, *results = prepared(messages, short_ids=True)
    short = [made["id"] for made in call["tool_calls"]]
    assert all(len(identity) == 9 and identity.isalnum() and identity.isascii() for identity in short)
    assert len(set(short)) == len(ids)
    assert [made["tool_call_id"] for made in results] == short


def test_ids_that_are_short_already_are_kept() -> None:
    _, call = prepared([USER, calling("abcDEF123", "call_1")], short_ids=True)
    assert call["tool_calls"][0]["id"] == "abcDEF123"
    assert call["tool_calls"][1]["id"] != "call_1"
