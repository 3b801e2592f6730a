"""Runs against endpoints that take nothing but what they know: what each wants can be given, and nothing is lost."""

import json

import pytest

from sft_toolkit.cli.teacher_parameters import body_fields
from sft_toolkit.errors import UsageError
from tests.strict_servers import ANSWER, DeepSeek, Mistral, OpenAIReasoning, StreamOnly
from tests.template_server import listening

PROMPT = {"id": "p0", "domain": "math", "messages": [{"role": "user", "content": "Frage"}]}
TOOL_EXCHANGE = [
    {"role": "user", "content": "Frage"},
    {"role": "assistant", "reasoning": "Erst den Preis.", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "price", "arguments": {"of": "Brot"}}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "4"},
]  # fmt: skip


@pytest.fixture
def distill(run_cli, tmp_path):
    """`distill(server, *options, record=…)`: the process, its summary, and its rows."""

    def run(server, *options, record=PROMPT, code=0):
        source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
        source.write_text(json.dumps(record) + "\n")
        with listening(server.answer) as url:
            common = ("--teacher", url, "--model", "m", "--backoff", "0.02", "--json", "--force")
            found = run_cli("distill", source, "-o", output, *common, *options)
        assert found.returncode == code, found.stderr
        if code:
            return found.stderr.decode(), None
        return json.loads(found.stdout), [json.loads(line) for line in output.read_text().splitlines()]

    return run


def test_deepseek_gets_the_opener_as_reasoning_with_prefix(distill):
    server = DeepSeek()
    summary, (row,) = distill(server)
    assert summary["teacher"]["prefill"] == "reasoning-prefix"
    opener = row["trace"]["opener"]
    last = server.bodies[-1]["messages"][-1]
    assert last == {"role": "assistant", "content": "", "reasoning_content": opener, "prefix": True}
    assert row["messages"][-1]["reasoning"].startswith(opener)


def test_deepseek_gets_the_reasoning_of_an_open_tool_exchange_back_and_of_no_earlier_one(distill):
    server = DeepSeek()
    earlier = [*TOOL_EXCHANGE, {"role": "assistant", "reasoning": "Fertig gedacht.", "content": "4 Euro"}]
    record = {**PROMPT, "messages": [*earlier, *TOOL_EXCHANGE]}
    summary, _ = distill(server, record=record)
    assert summary["out"] == 1
    sent = [message.get("reasoning_content") for message in server.bodies[-1]["messages"]]
    assert "Fertig gedacht." not in sent
    assert [index for index, text in enumerate(sent) if text == "Erst den Preis."] == [6]


def test_mistral_gets_no_field_that_it_does_not_know_and_the_opener_as_a_part_that_is_open(distill):
    server = Mistral()
    summary, (row,) = distill(server, "--parameter", "seed=", "--parameter", "random_seed=7", "--max-tokens", "500")
    assert summary["teacher"]["prefill"] == "thinking-part"
    assert "seed" not in server.bodies[-1] and server.bodies[-1]["random_seed"] == 7
    assert row["messages"][-1]["reasoning"].count(row["trace"]["opener"]) == 1


def test_mistral_refuses_a_seed_by_its_name(distill):
    said, _ = distill(Mistral(), code=1)
    assert "HTTP 422" in said and "seed" in said


def test_reasoning_is_left_out_of_messages_too(distill):
    server = Mistral()
    left_out = ("--parameter", "seed=", "--parameter", "reasoning=", "--parameter", "reasoning_content=")
    summary, _ = distill(server, *left_out, record={**PROMPT, "messages": TOOL_EXCHANGE})
    assert summary["out"] == 1


def test_openais_reasoning_models_get_their_own_limit_and_no_temperature(distill):
    server = OpenAIReasoning()
    options = ("--prefill", "none", "--max-completion-tokens", "4000", "--keep", "ok", "--keep", "too_short")
    _, (row,) = distill(server, *options, "--parameter", 'reasoning_effort="low"')
    assert server.statuses == {200: 1}
    assert server.bodies[0]["max_completion_tokens"] == 4000 and "temperature" not in server.bodies[0]
    assert row["messages"][-1]["content"] == ANSWER


@pytest.mark.parametrize("options", [("--max-tokens", "9"), ("--temperature", "0.5")])
def test_what_openais_reasoning_models_refuse_is_said_in_their_words(distill, options):
    said, _ = distill(OpenAIReasoning(), "--prefill", "none", *options, code=1)
    assert "the teacher refuses every question" in said and "Unsupported" in said


def test_the_canary_is_asked_with_the_users_limits_alone(distill):
    server = DeepSeek()
    distill(server, "--max-completion-tokens", "77", "--temperature", "0.6")
    assert {(body["max_completion_tokens"], body["temperature"]) for body in server.bodies} == {(77, 0.6)}
    assert not any("max_tokens" in body for body in server.bodies)


@pytest.mark.parametrize("stream", [("--stream",), ("--parameter", "stream=true")])
def test_an_endpoint_that_only_streams_gives_the_reply_that_would_have_come_whole(distill, stream):
    server = StreamOnly()
    summary, (row,) = distill(server, *stream)
    assert (summary["teacher"]["answered"], summary["teacher"]["tokens_out"]) == (1, 20)
    opener = row["trace"]["opener"]
    assert (
        row["messages"][-1]["reasoning"]
        == f"{opener} eine Aufgabe, die wir in aller Ruhe und der Reihe nach lösen wollen."
    )
    assert row["messages"][-1]["content"] == ANSWER


def test_a_stream_that_breaks_off_is_kept_as_it_came_and_asked_again(distill, tmp_path):
    server = StreamOnly(cut_after=6)
    summary, rows = distill(server, "--stream", "--prefill", "none", "--journal", tmp_path / "j")
    assert len(rows) == 1 and sum(summary["teacher"]["setbacks"].values()) == 1
    fault, answer = [json.loads(line) for line in next((tmp_path / "j").glob("replies-*")).read_text().splitlines()]
    assert fault["fault"] == "not a reply: the stream ended before the reply did" and fault["raw"]
    assert answer["reply"]["choices"][0]["message"]["content"] == ANSWER


def test_stream_options_are_left_out_where_a_server_refuses_them(distill):
    summary, rows = distill(StreamOnly(refuses_usage=True), "--stream", "--parameter", "stream_options=")
    assert len(rows) == 1 and summary["teacher"]["tokens_out"] == 0


def test_without_streaming_such_an_endpoint_says_what_it_wants(distill):
    said, _ = distill(StreamOnly(), "--prefill", "none", code=1)
    assert "only supports streaming" in said


@pytest.mark.parametrize(
    ("parameter", "says"),
    [
        ("n=2", "a question gets one reply"),
        ("echo=true", "the reply would begin with the question"),
        ("messages=[]", "the question decides it"),
        ('model="x"', "name it with --model"),
        ("stream=1", "neither true nor false"),
        ("chat_template_kwargs=3", "no object"),
        ("max_tokens=", "given, and left out"),
        ("max_completion_tokens=5", "two limits of length"),
    ],
)
def test_a_parameter_that_would_change_the_protocol_is_refused_before_anything_is_paid(parameter, says):
    with pytest.raises(UsageError) as caught:
        body_fields(further=[parameter], variables=None, streamed=False, max_tokens=9)
    assert says in f"{caught.value.message}; {caught.value.hint}"


def test_one_reply_may_be_named():
    assert body_fields(further=["n=1", "echo=false"], variables=None, streamed=False).parameters == {
        "n": 1,
        "echo": False,
    }


def test_template_variables_go_to_the_server(distill):
    server = DeepSeek()
    distill(server, "--template-variable", "enable_thinking=true")
    assert {body["chat_template_kwargs"]["enable_thinking"] for body in server.bodies} == {True}
