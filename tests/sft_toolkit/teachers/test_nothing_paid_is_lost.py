"""What came with status 200 is in the journal, whatever it looks like; what was cut is asked again, nothing else."""

import asyncio
import base64
import gc
import json
import stat

import httpx
import pytest

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.teachers.asking import Asker, AskingState
from sft_toolkit.teachers.bodies import decode_body
from sft_toolkit.teachers.event_stream import whole_reply
from sft_toolkit.teachers.http_client import Timeouts
from sft_toolkit.teachers.http_teacher import HttpTeacher
from sft_toolkit.teachers.journal import Journal, Replies
from sft_toolkit.teachers.journal_config import claim
from sft_toolkit.teachers.key_filter import KeyFilter
from sft_toolkit.teachers.pace import Patience
from sft_toolkit.teachers.replies import read_reply
from sft_toolkit.teachers.requests import Asking, Request
from sft_toolkit.teachers.teacher import RawReply
from tests.template_server import listening

ASKING = Asking("m", "none", {})
SECRET = "sk-test-0123456789abcdef"


def question(number):
    return Request([{"role": "user", "content": f"Frage {number}"}], record=f"p{number}")


def body(text, **more):
    return json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop", **more}]}).encode()


def ask(folder, url, requests, asking=ASKING, attempts=2, key=None):
    """Ask into the journal of `folder`; the state at the end."""

    async def run():
        teacher, journal = HttpTeacher(url, Timeouts(2, 2, 5), key=key), Journal(folder)
        state = AskingState()
        patience = Patience(attempts, backoff=0.01, give_up=5)
        asker = Asker(teacher, asking, journal, most=8, patience=patience, state=state, show=lambda state: None)
        try:
            await asker.ask_all(iter(requests))
        finally:
            journal.close()
            await teacher.close()
        return state

    return asyncio.run(run())


def lines(folder):
    return [json.loads(line) for path in folder.glob("replies-*") for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (rb'{"choices": [{"message": {"content": "gut \ud83d so"}, "finish_reason": "stop"}]}', "gut � so"),
        (rb'{"choices": [{"message": {"content": "gut \ud83d\ude00"}, "finish_reason": "stop"}]}', "gut 😀"),
        (b"\xef\xbb\xbf" + body("gut"), "gut"),
        (b'{"choices": [{"message": {"content": "gr\xfc\xdfe"}, "finish_reason": "stop"}]}', "gr��e"),
        (b'{"choices": [{"message": {"content": "a\tb"}, "finish_reason": "stop"}]}', "a\tb"),
        (b'{"choices": [{"message": {"content": "x"}, "finish_reason": "stop", "logprobs": NaN}]}', "x"),
        (b'{"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "cost": 1e-9999999999999999999}', "x"),
    ],
)
def test_an_odd_reply_is_kept_raw_asked_once_and_read(tmp_path, sent, text):
    asked = []
    with listening(lambda path, given: (asked.append(given), (200, sent))[1]) as url:
        state = ask(tmp_path, url, [question(0)])
    assert (state.answered, len(asked), sum(state.setbacks.values())) == (1, 1, 0)
    raw = Replies.scan(tmp_path).answer(ASKING, question(0), even_cut=False)
    assert decode_body(raw.body) == decode_body(sent)
    assert read_reply(raw).content == text


@pytest.mark.parametrize(
    "sent", [b"<html>busy</html>", b'{"choices": [{"mess', b"", b'{"object": "error"}', b"\xff\xfe"]
)
def test_what_is_no_reply_is_kept_raw_with_why_and_its_question_asked_again(tmp_path, sent):
    coming = iter([sent, body("gut")])
    with listening(lambda path, given: (200, next(coming))) as url:
        state = ask(tmp_path, url, [question(0)])
    assert state.answered == 1
    faults = [line for line in lines(tmp_path) if "fault" in line]
    assert [base64.b64decode(line["raw"]) for line in faults] == ([sent] if sent else [])
    assert read_reply(Replies.scan(tmp_path).answer(ASKING, question(0), even_cut=False)).content == "gut"


def test_an_error_inside_of_status_200_is_taken_for_what_it_says(tmp_path):
    coming = iter([b'{"error": {"code": 429, "message": "slow down"}}'] * 3 + [body("gut")])
    with listening(lambda path, given: (200, next(coming))) as url:
        state = ask(tmp_path, url, [question(0)], attempts=1)
    assert (state.answered, state.given_up) == (1, 0)


def test_equal_prompts_under_two_ids_get_a_reply_each(tmp_path):
    numbers = iter(range(9))
    same = [{"role": "user", "content": "Frage"}]
    requests = [Request(same, record=name) for name in ("a", "b")]
    with listening(lambda path, given: (200, body(f"Antwort {next(numbers)}"))) as url:
        ask(tmp_path, url, requests)
    replies = Replies.scan(tmp_path)
    assert {read_reply(replies.answer(ASKING, each, even_cut=False)).content for each in requests} == {
        "Antwort 0",
        "Antwort 1",
    }


def limited(limit, *, name="max_tokens", force=False, folder=None):
    asking = Asking("m", "none", {name: limit} if limit else {})
    config = {"stage": "distill", **asking.to_json()}
    return Asking("m", "none", asking.parameters, earlier=claim(folder, config, force=force))


def test_a_higher_limit_asks_only_what_was_cut_and_keeps_the_rest(tmp_path):
    def answer(path, given):
        asked.append(given["messages"][0]["content"])
        fits = given.get("max_tokens", 999) >= int(asked[-1].split()[-1])
        return 200, body("ganz" if fits else "halb", **({} if fits else {"finish_reason": "length"}))

    requests = [question(number) for number in (10, 20, 30)]
    with listening(answer) as url:
        for limit, expected in ((10, 3), (20, 2), (20, 1), (25, 1), (None, 1), (None, 0)):
            asked = []
            asking = limited(limit, folder=tmp_path)
            ask(tmp_path, url, requests, asking)
            assert len(asked) == (expected if (limit, expected) != (20, 1) else 0), limit
    replies = Replies.scan(tmp_path)
    assert [read_reply(replies.answer(asking, each, even_cut=False)).content for each in requests] == ["ganz"] * 3


def test_what_is_cut_under_every_limit_is_judged_as_cut(tmp_path):
    asking = limited(10, folder=tmp_path)
    journal = Journal(tmp_path)
    journal.append(asking.key(question(0)), RawReply(200, body("halb", finish_reason="length")))
    journal.close()
    raised = limited(20, folder=tmp_path)
    replies = Replies.scan(tmp_path)
    assert replies.answer(raised, question(0), even_cut=False) is None
    assert read_reply(replies.answer(raised, question(0), even_cut=True)).is_cut


def test_a_lower_limit_is_refused_and_a_limit_of_another_name_is_not(tmp_path):
    limited(20, folder=tmp_path)
    with pytest.raises(UsageError, match="was begun with another parameters"):
        limited(10, folder=tmp_path)
    assert limited(20, name="max_completion_tokens", folder=tmp_path).earlier == ({"max_tokens": 20},)
    assert limited(10, force=True, folder=tmp_path).earlier == ()


def test_journal_and_folder_are_for_their_owner_alone(tmp_path):
    folder = tmp_path / "new" / "journal"
    claim(folder, {"stage": "distill", **ASKING.to_json()}, force=False)
    Journal(folder).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert len(list(folder.iterdir())) == 4


@pytest.mark.parametrize("status", [401, 402, 307])
def test_many_fatal_replies_at_once_end_in_one_error_and_leave_nothing_unretrieved(tmp_path, status, capsys, caplog):
    questions = [question(number) for number in range(30)]
    refusal = {"error": {"message": "no"}}
    with (
        listening(lambda path, given: (status, refusal)) as url,
        pytest.raises(ToolkitError, match=f"{status}|redirects"),
    ):
        ask(tmp_path, url, questions)
    gc.collect()
    assert "never retrieved" not in capsys.readouterr().err + caplog.text


@pytest.mark.parametrize(
    "echo",
    [
        SECRET,
        "".join(f"\\u{ord(character):04x}" for character in SECRET),
        "".join(f"\\u{ord(character):04X}" for character in SECRET),
        SECRET.replace("-", "\\u002d"),
        SECRET.replace("-", "\\u002D", 1),
        SECRET.replace("-", "\\\\u002d"),
    ],
)
def test_a_key_is_blotted_out_however_json_escapes_it(echo):
    content = b'{"error": {"message": "no key ' + echo.encode() + b', sorry"}}'
    assert KeyFilter(SECRET).clean(content) == b'{"error": {"message": "no key ***, sorry"}}'


@pytest.mark.parametrize("key", ["sk/0123456789abcdef", "a+b.c*d(e)f[g]h^i$j", "k{1}|x?0123456789"])
def test_a_key_of_odd_characters_is_blotted_out_too(key):
    text = json.dumps({"said": key, "twice": json.dumps({"said": key})}).replace("/", "\\/").encode()
    assert key.encode() not in KeyFilter(key).clean(text)
    assert KeyFilter(key).clean(text).count(b"***") == 2


def test_a_key_that_comes_in_pieces_is_blotted_out_of_the_whole():
    pieces = [SECRET[:9], SECRET[9:]]
    events = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    stream = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=stream)
    raw = HttpTeacher("http://localhost/v1", Timeouts(), key=SECRET)._judged(response)
    assert read_reply(raw).content == "***"


def stream(*events, end=b"data: [DONE]\n\n"):
    return (
        b"".join(
            b"data: " + (event if isinstance(event, bytes) else json.dumps(event).encode()) + b"\n\n"
            for event in events
        )
        + end
    )


def delta(finish=None, **fields):
    return {"id": "x", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def test_pieces_of_texts_calls_and_halves_of_characters_are_put_together():
    call = {"index": 0, "id": "c1", "function": {"name": "pay", "arguments": '{"sum"'}}
    whole = json.loads(
        whole_reply(
            stream(
                delta(role="assistant", content=""),
                delta(reasoning_content="Wir "),
                delta(reasoning_content="rechnen."),
                rb'{"choices": [{"index": 0, "delta": {"content": "gut \ud83d"}}]}',
                rb'{"choices": [{"index": 0, "delta": {"content": "\ude00"}}]}',
                delta(tool_calls=[call]),
                delta(tool_calls=[{"index": 0, "function": {"arguments": ": 16.20}"}}]),
                delta("tool_calls"),
                {"choices": [], "usage": {"completion_tokens": 7}},
            )
        )
    )
    message = whole["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("Wir rechnen.", "gut 😀")
    assert message["tool_calls"][0]["function"] == {"name": "pay", "arguments": '{"sum": 16.20}'}
    assert (whole["choices"][0]["finish_reason"], whole["usage"]["completion_tokens"]) == ("tool_calls", 7)


def test_parts_of_content_and_calls_without_an_index_are_put_together():
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Wir rechnen."}]}
    calls = [{"id": name, "function": {"name": name, "arguments": {"n": 1}}} for name in ("a", "b")]
    pieces = [
        delta(content=[thinking]),
        delta(content=[{"type": "text", "text": "gut"}]),
        delta(tool_calls=calls),
        delta("stop"),
    ]
    reply = read_reply(RawReply(200, whole_reply(stream(*pieces))))
    assert (reply.reasoning, reply.content) == ("Wir rechnen.", "gut")
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("a", {"n": 1}), ("b", {"n": 1})]


def test_a_stream_of_a_text_completion_is_put_together():
    pieces = [{"choices": [{"index": 0, "text": text, "finish_reason": None}]} for text in ("9, ", "10")]
    pieces.append({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]})
    assert json.loads(whole_reply(stream(*pieces, end=b"")))["choices"][0]["text"] == "9, 10"


@pytest.mark.parametrize(
    "broken",
    [
        stream(delta(content="so"), end=b""),
        stream(delta(content="so"), end=b'data: {"choices": [{"ind'),
        stream(b"[1, 2]"),
        b"",
    ],
)
def test_a_stream_that_ends_before_its_reply_is_none(broken):
    with pytest.raises(ValueError):
        whole_reply(broken)


def test_an_error_in_a_stream_is_the_reply():
    assert json.loads(whole_reply(stream(delta(content="so"), {"error": {"code": 503}}))) == {"error": {"code": 503}}
