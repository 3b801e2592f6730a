"""The HTTP teacher on a real socket: what each fault becomes, which forms of prefill pass the handshake."""

import asyncio
import json
from dataclasses import replace

import httpx
import pytest

from sft_toolkit.errors import ToolkitError, TryAgain
from sft_toolkit.teachers.http_client import Timeouts
from sft_toolkit.teachers.http_teacher import HttpTeacher, _retry_after
from sft_toolkit.teachers.prefill import chat_body
from sft_toolkit.teachers.rendering import TeacherTemplate
from sft_toolkit.teachers.replies import read_reply, read_usage
from sft_toolkit.teachers.requests import Asking, Request
from sft_toolkit.teachers.teacher import Busy, Faulty, Unreachable

ASKING = Asking("m", "reasoning-field", {"max_tokens": 100})
REQUEST = Request([{"role": "user", "content": "Frage"}], opener="Gegeben ist:")
SECRET = "sk-test-0123456789abcdef"


def ask(url, asking=ASKING, request=REQUEST, key=None, timeouts=None, template=None, settle=False):
    async def run():
        teacher = HttpTeacher(url, timeouts or Timeouts(2, 2, 5), key=key, template=template)
        try:
            return await (teacher.settle_prefill(asking) if settle else teacher.ask(asking, request))
        finally:
            await teacher.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("fault", "error", "says"),
    [
        ("429", Busy, "HTTP 429"),
        ("503", Busy, "HTTP 503"),
        ("500", Faulty, "HTTP 500: scripted 500"),
        ("502", Faulty, "HTTP 502"),
        ("408", Faulty, "HTTP 408"),
        ("reset", Faulty, "the reply broke off"),
        ("malformed", Faulty, "not a reply: no JSON"),
        ("no-choices", Faulty, "not a reply: out of memory"),
        ("bad-gzip", Faulty, "the reply broke off"),
        ("too-deep", Faulty, "not a reply: no JSON"),
        ("202", Faulty, "not a reply: scripted 202"),
        ("broken", Faulty, "not a reply"),
        ("odd-calls", Faulty, "not a reply"),
        ("hang", Faulty, "the reply stopped coming"),
        ("402", TryAgain, "HTTP 402"),
        ("401", ToolkitError, "HTTP 401"),
        ("404", ToolkitError, "HTTP 404"),
        ("redirect", ToolkitError, "redirects to elsewhere.example"),
    ],
)
def test_each_fault_is_told_by_its_kind(serve, fault, error, says):
    server = serve(script=[fault], hold=3)
    with pytest.raises(error, match=says):
        ask(server.url, timeouts=Timeouts(1, 0.3, 5))
    assert len(server.requests()) == 1


def test_retry_after_is_read(serve):
    with pytest.raises(Busy) as caught:
        ask(serve(script=["429-after"]).url)
    assert caught.value.wait == 0.2


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("7", 7.0),
        ("0", None),
        ("-5", None),
        ("nan", None),
        ("soon", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", None),
        ("Mon, 01 Jan 0001 00:00:00 -0000", None),
        ("Mon, 01 Jan 99999 00:00:00 GMT", None),
    ],
)
def test_a_retry_after_that_asks_for_nothing_leaves_the_delay_to_us(given, seconds):
    assert _retry_after(given) == seconds


def test_a_reply_that_takes_too_long_in_all_is_given_up(serve):
    with pytest.raises(Faulty, match=r"no reply within 0\.3 s"):
        ask(serve(delay=3).url, timeouts=Timeouts(1, 10, 0.3))


def test_a_refusal_of_this_question_is_a_final_reply_with_the_servers_message(serve):
    raw = ask(serve(script=["422"]).url)
    assert read_reply(raw, REQUEST.opener).refusal.startswith("HTTP 422: scripted 422")


@pytest.mark.parametrize("fault", ["text-400", "list-400"])
def test_a_refusal_that_is_plain_text_or_a_list_of_errors_says_what_the_server_said(serve, fault):
    raw = ask(serve(script=[fault]).url)
    assert read_reply(raw, REQUEST.opener).refusal == "HTTP 400: the prompt is too long"
    assert read_usage(raw).tokens_in == 0


def test_nobody_listening_is_unreachable():
    with pytest.raises(Unreachable, match="no connection"):
        ask("http://127.0.0.1:9/v1")


def test_the_key_is_sent_in_its_header_and_blotted_out_of_what_the_server_echoes(serve):
    server = serve(script=["400", "401"], secret=SECRET)
    raw = ask(server.url, key=SECRET)
    assert server.requests()[0]["authorization"] == f"Bearer {SECRET}"
    assert SECRET.encode() not in raw.body
    with pytest.raises(ToolkitError) as caught:
        ask(server.url, key=SECRET)
    assert SECRET not in str(caught.value)


def test_a_word_that_stands_for_a_key_is_not_blotted_out_of_answers(serve):
    answers = {"Frage": {"reasoning": " erst return EMPTY, dann weiter", "content": "EMPTY"}}
    assert b"return EMPTY" in ask(serve(answers=answers).url, key="EMPTY").body


def test_a_key_is_blotted_out_however_json_writes_its_slashes():
    teacher = HttpTeacher("http://localhost/v1", Timeouts(), key="sk/0123456789abcdef")
    response = httpx.Response(
        400, content=rb'{"error": {"message": "no sk\/0123456789abcdef, no sk/0123456789abcdef"}}'
    )
    assert b"0123" not in teacher._judged(response).body


def test_a_proxy_is_told_of_when_it_cannot_be_used_and_not_asked_for_this_machine(serve, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "gopher://proxy.example")
    assert ask(serve().url).status == 200
    with pytest.raises(ToolkitError, match="names a proxy that cannot be used") as caught:
        ask("http://teacher.example/v1")
    assert "NO_PROXY" in caught.value.hint


def test_both_names_of_the_reasoning_field_are_sent_and_the_flags_that_continue_it(serve):
    server = serve()
    reply = read_reply(ask(server.url), REQUEST.opener, "reasoning-field")
    body = server.requests()[0]["body"]
    assert body["messages"][-1] == {
        "role": "assistant",
        "content": "",
        "reasoning_content": "Gegeben ist:",
        "reasoning": "Gegeben ist:",
    }
    assert (body["continue_final_message"], body["add_generation_prompt"]) == (True, False)
    assert reply.reasoning.startswith("Gegeben ist: eine Aufgabe")


def test_completions_render_the_template_open_the_block_and_append_the_opener(serve, sample_data):
    server = serve()
    template = TeacherTemplate(sample_data / "tokenizer")
    ask(server.url, replace(ASKING, prefill="completions"), template=template)
    (sent,) = [request["body"]["prompt"] for request in server.requests()]
    assert sent == template.opened(replace(REQUEST, opener=""), {}) + "Gegeben ist:"
    assert sent.endswith("<think>\nGegeben ist:")


def test_arguments_of_earlier_calls_travel_as_json_text_with_an_id():
    call = {"type": "function", "function": {"name": "pay", "arguments": {"sum": 5}}}
    request = Request([{"role": "assistant", "content": None, "tool_calls": [call]}])
    (sent,) = chat_body(ASKING, request)["messages"][0]["tool_calls"]
    assert (sent["id"], sent["function"]["arguments"]) == ("call_0", '{"sum":5}')


def test_auto_takes_the_form_that_the_servers_own_rendering_shows_to_be_open(serve):
    server = serve(open="reasoning-field")
    assert ask(server.url, replace(ASKING, prefill="auto"), settle=True).prefill == "reasoning-field"
    assert {request["path"] for request in server.requests()} == {"/apply-template"}


@pytest.mark.parametrize(
    ("style", "form"),
    [("reasoning", "reasoning-field"), ("continued", "reasoning-prefix"), ("reasoning", "opener-alone")],
)
def test_without_such_a_rendering_a_canary_must_be_continued(serve, style, form):
    asking = replace(ASKING, prefill=form)
    assert ask(serve(open=None, style=style).url, asking, settle=True).prefill == form


@pytest.mark.parametrize("form", ["content", "prefix-flag", "opener-alone"])
def test_text_of_ours_that_is_continued_as_text_proves_nothing(serve, form):
    with pytest.raises(ToolkitError) as caught:
        ask(serve(open=None, style="continued").url, replace(ASKING, prefill=form), settle=True)
    assert "add `tokenizer`" in caught.value.hint


@pytest.mark.parametrize(
    ("style", "why"),
    [
        ("skipped", "the reply holds no thinking"),
        ("anew", "the thinking begins anew: 'Okay, the user wants me to count.'"),
        ("unclosed", "the thinking of the reply never ends"),
    ],
)
def test_a_server_that_does_not_continue_the_thinking_is_refused_with_the_reason(serve, style, why):
    with pytest.raises(ToolkitError, match="does not land inside open thinking") as caught:
        ask(serve(open=None, style=style).url, settle=True)
    assert why in str(caught.value)


def test_auto_reports_what_every_form_did_when_none_works(serve):
    with pytest.raises(ToolkitError) as caught:
        ask(serve(open=None, style="skipped").url, replace(ASKING, prefill="auto"), settle=True)
    assert all(form in str(caught.value) for form in ("reasoning-field: ", "content: ", "prefix-flag: "))


@pytest.mark.parametrize(("fault", "hint"), [("401", "is the key right?"), ("404", "and `model`")])
def test_what_no_form_can_mend_is_told_as_itself(serve, fault, hint):
    with pytest.raises(ToolkitError, match=f"HTTP {fault}") as caught:
        ask(serve(open=None, script=[fault] * 9).url, replace(ASKING, prefill="auto"), settle=True)
    assert "opener" not in str(caught.value)
    assert hint in caught.value.hint


def test_a_handshake_waits_for_a_busy_teacher(serve):
    server = serve(open=None, script=["429-after", "503", "429"], style="reasoning")
    assert ask(server.url, settle=True).prefill == "reasoning-field"


def test_a_handshake_with_nobody_means_try_again():
    with pytest.raises(TryAgain, match="does not answer"):
        ask("http://127.0.0.1:9/v1", settle=True)


def test_sampling_seeds_differ_by_sample_and_repeat():
    seeds = [ASKING.sampling_seed(Request(REQUEST.messages, sample)) for sample in (0, 1, 0)]
    assert seeds[0] == seeds[2] != seeds[1]
    assert json.dumps(seeds)
    assert all(0 <= seed < 2**31 for seed in seeds)
