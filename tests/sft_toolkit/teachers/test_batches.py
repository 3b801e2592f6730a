"""Batches: handed over once, found again after a kill, their replies in the journal like any other."""

import json
import os
import signal
import subprocess
import time

import pytest

from sft_toolkit.teachers import batch_lines
from sft_toolkit.teachers.batch_lines import read_replies, write_batches
from tests.conftest import cli_command
from tests.strict_servers import Batches
from tests.template_server import listening

COMMON = ("--model", "m", "--prefill", "none", "--backoff", "0.02", "--json")
SUBMIT = ("--batch", "--batch-poll", "0.02")


@pytest.fixture
def distill(run_cli, tmp_path):
    """`distill(*options)`: the summary of a run into out.jsonl, or with another `code` what it said."""

    def run(*options, count=5, code=0):
        found = run_cli("distill", prompts(tmp_path, count), "-o", tmp_path / "out.jsonl", "--force", *COMMON, *options)
        assert found.returncode == code, found.stderr
        return json.loads(found.stdout) if code == 0 else found.stderr.decode()

    return run


def prompts(folder, count):
    path = folder / "prompts.jsonl"
    records = [{"id": f"p{n}", "messages": [{"role": "user", "content": f"Frage {n}"}]} for n in range(count)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_batch_is_handed_over_waited_for_and_judged_like_any_replies(distill, tmp_path):
    server = Batches()
    with listening(server.answer) as url:
        summary = distill("--teacher", url, *SUBMIT, "--max-tokens", "50")
        assert (summary["out"], summary["teacher"]["answered"], summary["teacher"]["tokens_out"]) == (5, 5, 100)
        again = distill("--teacher", url, *SUBMIT, "--max-tokens", "50")
    assert (again["out"], len(server.batches)) == (5, 1)
    (line, *_) = server.files["file-0"].splitlines()
    assert json.loads(line)["body"]["max_tokens"] == 50
    ids = [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert ids == [f"p{n}" for n in range(5)]
    assert list((tmp_path / "out.jsonl.journal" / "batches").iterdir()) == []


def test_what_a_batch_leaves_open_is_handed_over_again_by_the_same_command(distill):
    server = Batches(expires_after=2)
    with listening(server.answer) as url:
        first = distill("--teacher", url, *SUBMIT)
        assert (first["out"], first["rejected"], first["teacher"]["given_up"]) == (2, {"retry_exhausted": 3}, 3)
        server.expires_after = None
        assert distill("--teacher", url, *SUBMIT)["out"] == 5
    assert sorted(server.asked.values()) == [1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    "fails", [{"/files": [500, 429]}, {"/batches": [503, 500]}, {"/files/": [500]}, {"/batches/": [502]}]
)
def test_setbacks_of_a_batch_are_waited_out(distill, fails):
    server = Batches(fails)
    with listening(server.answer) as url:
        summary = distill("--teacher", url, *SUBMIT)
    assert summary["out"] == 5 and sum(summary["teacher"]["setbacks"].values()) == 2 - (
        len(next(iter(fails))) > 8 or "s/" in str(fails)
    )
    assert set(server.asked.values()) == {1}


def test_an_endpoint_without_batches_is_named_as_such(distill):
    with listening(lambda path, body: (404, {"error": {"message": "no such path"}})) as url:
        said = distill("--teacher", url, *SUBMIT, code=1)
    assert "HTTP 404" in said and "has this endpoint /files and /batches?" in said


def test_a_run_killed_at_any_point_finds_its_batch_again_and_hands_nothing_over_twice(tmp_path):
    source, output = prompts(tmp_path, 40), tmp_path / "out.jsonl"

    class Slow(Batches):
        def answer(self, path, body):
            time.sleep(0.1)
            return super().answer(path, body)

    server = Slow()
    with listening(server.answer) as url:
        command = cli_command("distill", source, "-o", output, "--force", "--teacher", url, *COMMON, *SUBMIT)
        for reached in (
            lambda: server.files,
            lambda: server.batches,
            lambda: server.looks["batch-0"] >= 2,
            lambda: "batch-0-out" in server.files,
        ):
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + 60
            while not reached() and time.monotonic() < deadline:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.wait()
        found = subprocess.run(command, capture_output=True, timeout=120)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["out"] == 40
    assert len(server.asked) == 40 and set(server.asked.values()) == {1}


def test_questions_go_to_a_provider_by_hand_and_replies_come_back(distill, tmp_path):
    written = distill("--batch-file", tmp_path / "questions.jsonl")
    assert written["notes"]["questions written"] == 5
    lines = [json.loads(line) for line in (tmp_path / "questions.jsonl").read_text().splitlines()]
    assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}
    server = Batches()
    (tmp_path / "replies.jsonl").write_bytes(
        b"".join(map(server.reply_line, lines[:3])) + b'\n{"custom_id": "x"}\nnoise\n'
    )
    first = distill("--batch-replies", tmp_path / "replies.jsonl")
    assert (first["out"], first["rejected"], first["teacher"]["answered"]) == (3, {"retry_exhausted": 2}, 3)
    assert sum(first["teacher"]["setbacks"].values()) == 2
    rest = distill("--batch-file", tmp_path / "rest.jsonl")
    assert (rest["notes"]["questions written"], rest["notes"]["kept from before"]) == (2, 3)
    (tmp_path / "replies2.jsonl").write_bytes(b"".join(map(server.reply_line, lines[3:])))
    assert distill("--batch-replies", tmp_path / "replies2.jsonl")["out"] == 5


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--batch", "--batch-file", "x"), "--batch and --batch-file together"),
        (("--batch-file", "x", "--prefill", "auto"), "name a form with --prefill"),
        (("--batch",), "--teacher is missing"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(distill, options, says):
    assert says in distill(*options, code=2)


def test_a_local_teacher_has_no_batches(distill, tmp_path):
    assert "answers no batches" in distill("--teacher", f"local:{tmp_path}", "--batch", code=2)


def question(number, path="/chat/completions"):
    return f"{number:032x}", path, {"messages": [{"role": "user", "content": "x" * 100}]}


def test_files_hold_no_more_than_a_batch_may_and_one_endpoint_each(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_lines, "MOST_LINES", 4)
    files = write_batches(tmp_path / "q.jsonl", [*map(question, range(9)), question(9, "/completions")])
    assert [(file.path.name, file.url, file.lines) for file in files] == [
        ("q.jsonl", "/v1/chat/completions", 4),
        ("q-2.jsonl", "/v1/chat/completions", 4),
        ("q-3.jsonl", "/v1/chat/completions", 1),
        ("q-4.jsonl", "/v1/completions", 1),
    ]
    monkeypatch.setattr(batch_lines, "MOST_BYTES", 500)
    assert [file.lines for file in write_batches(tmp_path / "b.jsonl", map(question, range(5)))] == [2, 2, 1]
    assert oct(os.stat(tmp_path / "q.jsonl").st_mode)[-3:] == "600"


KEY = f"{7:032x}"
ANSWERED = {"choices": [{"message": {"content": "gut"}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    ("entry", "status"),
    [
        ({"custom_id": KEY, "response": {"status_code": 200, "body": ANSWERED}, "error": None}, 200),
        ({"custom_id": KEY, "response": {"body": ANSWERED}}, 200),
        ({"custom_id": KEY, "response": {"status_code": 400, "body": {"error": {"message": "no"}}}}, 400),
        ({"custom_id": KEY, "response": {"status_code": 429, "body": {"error": {"message": "slow"}}}}, None),
        ({"custom_id": KEY, "response": {"status_code": 500, "body": None}}, None),
        ({"custom_id": KEY, "response": {"status_code": 200, "body": {"error": "x"}}}, None),
        ({"custom_id": KEY, "response": None, "error": {"code": "batch_expired", "message": "late"}}, None),
    ],
)
def test_a_line_is_a_final_reply_or_leaves_its_question_open(entry, status):
    ((key, reply, said),) = read_replies([json.dumps(entry).encode() + b"\n", b"\n"])
    assert key == KEY
    assert (None if reply is None else reply.status) == status
    assert bool(said) == (reply is None)
