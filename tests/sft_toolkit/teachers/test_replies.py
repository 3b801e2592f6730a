"""Reading replies: one trace, however a server lays it out, with the opener exactly once."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.teachers.replies import is_answer, read_reply, read_usage, with_opener
from sft_toolkit.teachers.teacher import RawReply
from sft_toolkit.teachers.traces import classify

OPENER = "Gegeben ist:"


def chat(finish="stop", **message):
    return RawReply(200, json.dumps({"choices": [{"message": message, "finish_reason": finish}]}).encode())


def completion(text, finish="stop"):
    return RawReply(200, json.dumps({"choices": [{"text": text, "finish_reason": finish}]}).encode())


@pytest.mark.parametrize(
    ("raw", "prefill"),
    [
        (chat(reasoning=" x = 2", content="Also 2."), "reasoning-field"),
        (chat(reasoning_content=" x = 2", content="Also 2."), "reasoning-field"),
        (chat(thinking=" x = 2", content="Also 2."), "reasoning-field"),
        (chat(reasoning_content="Gegeben ist: x = 2", content="Also 2."), "reasoning-field"),
        (chat(reasoning_content="\nGegeben ist: x = 2", content="Also 2."), "reasoning-field"),
        (chat(content="<think>\nGegeben ist: x = 2\n</think>\n\nAlso 2."), "content"),
        (chat(content=" x = 2\n</think>\n\nAlso 2."), "content"),
        (chat(content=[{"type": "text", "text": " x = 2\n</think>\n\nAlso 2."}]), "prefix-flag"),
        (
            chat(content=[{"type": "reasoning", "text": " x = 2"}, {"type": "text", "text": "Also 2."}]),
            "reasoning-field",
        ),
        (
            chat(content=[{"type": "thinking", "thinking": [{"type": "text", "text": " x = 2"}]}, {"text": "Also 2."}]),
            "reasoning-field",
        ),
        (completion(" x = 2\n</think>\n\nAlso 2."), "completions"),
        (completion("x = 2\n</think>\n\nAlso 2."), "completions"),
    ],
)
def test_every_layout_of_a_reply_gives_the_same_trace_with_the_opener_once(raw, prefill):
    reply = read_reply(raw, OPENER, prefill)
    assert (reply.reasoning, reply.content) == ("Gegeben ist: x = 2", "Also 2.")
    assert (reply.thought_closed, reply.misfiled, reply.refusal) == (True, False, None)


@given(st.text(max_size=40).filter(lambda text: OPENER not in text))
def test_an_opener_stands_exactly_once_whether_it_was_echoed_or_not(rest):
    assert with_opener(rest, OPENER).count(OPENER) == 1
    assert with_opener(OPENER + rest, OPENER) == with_opener(rest, OPENER)


@pytest.mark.parametrize("echo", ["Gegeben ist:", "\nGegeben\n  ist:", "**Gegeben ist:**", "_Gegeben ist:_"])
def test_an_echo_in_other_dress_is_an_echo(echo):
    assert with_opener(f"{echo} x = 2", OPENER) == "Gegeben ist: x = 2"


def test_a_longer_word_is_no_echo():
    assert with_opener(" Wirklich ist x = 2", "Wir") == "Wir Wirklich ist x = 2"


def test_without_an_opener_nothing_is_added():
    reply = read_reply(chat(reasoning="Wir rechnen.", content="2"))
    assert (reply.reasoning, reply.content) == ("Wir rechnen.", "2")


def test_thinking_that_the_template_opened_out_of_sight_ends_with_its_mark():
    reply = read_reply(chat(content="Okay, the user wants a sum.\n</think>\n\nEs sind 2."))
    assert (reply.reasoning, reply.content, reply.misfiled) == ("Okay, the user wants a sum.", "Es sind 2.", False)


@pytest.mark.parametrize("mark", ["<THINK>", "</THINK>", "[THINK]", "◁/think▷"])
def test_marks_of_thinking_in_other_hands_are_misfiled(mark):
    assert read_reply(chat(content=f"{mark} Es sind 2.")).misfiled
    assert read_reply(chat(reasoning="Wir rechnen.", content=f"Es sind {mark} 2.")).misfiled


@pytest.mark.parametrize("finish", ["length", "model_length", "max_tokens"])
def test_every_name_of_the_limit_of_tokens_is_known(finish):
    reply = read_reply(chat(finish, reasoning=" eins zwei drei vier fünf", content="gut"), OPENER)
    assert classify(reply, OPENER, 5)[0] == "truncated"


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (chat(reasoning=" eins zwei drei vier fünf", content="gut"), "ok"),
        (chat(reasoning=" eins zwei", content="gut"), "too_short"),
        (chat("length", reasoning=" eins zwei drei vier fünf", content=""), "truncated"),
        (chat(content="<think>\neins zwei drei vier fünf"), "no_think_close"),
        (chat(content="gut"), "no_think_close"),
        (chat(content=""), "empty"),
        (chat(content=None), "empty"),
        (chat(reasoning=" eins zwei drei vier fünf", content=""), "empty"),
        (chat("content_filter", content="gut"), "refused"),
        (chat(content=None, refusal="no"), "refused"),
        (RawReply(400, b'{"error": {"message": "too long"}}'), "refused"),
        (chat(reasoning="eins zwei drei</think>vier fünf", content="gut"), "parser_misfiled"),
        (chat(reasoning="eins zwei drei vier fünf", content="vier</think>gut"), "parser_misfiled"),
        (None, "retry_exhausted"),
    ],
)
def test_the_form_of_a_reply_decides_its_class(raw, kind):
    reply = None if raw is None else read_reply(raw, OPENER, "reasoning-field")
    assert classify(reply, OPENER, 5)[0] == kind


def test_a_refusal_holds_the_message_of_the_server():
    reply = read_reply(RawReply(422, b'{"error": {"message": "max_tokens is too large"}}'))
    assert reply.refusal == "HTTP 422: max_tokens is too large"


def test_tool_calls_keep_the_digits_of_their_arguments():
    call = {"id": "c1", "function": {"name": "pay", "arguments": '{"sum": 16.20}'}}
    (found,) = read_reply(chat(content=None, tool_calls=[call])).tool_calls
    assert (found.name, found.id, str(found.arguments["sum"])) == ("pay", "c1", "16.20")


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"choices": []},
        {"choices": [{}]},
        {"error": "x"},
        "text",
        {"choices": [{"message": {"content": "Es si"}, "finish_reason": "error"}]},
        {"choices": [{"message": {"tool_calls": [{"function": "pay"}]}}]},
    ],
)
def test_what_has_no_choice_is_no_answer(body):
    assert not is_answer(body)


def test_usage_is_zero_where_the_server_does_not_say():
    assert read_usage(completion("x")).tokens_out == 0


@pytest.mark.parametrize("usage", ["none", [], {"completion_tokens": "many"}, {"completion_tokens": None}])
def test_usage_that_makes_no_sense_costs_no_reply(usage):
    body = {"choices": [{"text": "x"}], "usage": usage}
    assert read_usage(RawReply(200, json.dumps(body).encode())).tokens_out == 0
