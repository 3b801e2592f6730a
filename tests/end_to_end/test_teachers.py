"""Hours of paid work on endpoints that fail, in small: nothing is lost, nothing is paid for twice, no key leaks."""

import json
import os
import signal
import subprocess
import time
from collections import Counter

import pytest

from tests.conftest import cli_command

SECRET = "sk-test-0123456789abcdef"
FAULTS = ["429", "429-after", "500", "503", "reset", "malformed", "no-choices", "hang"]


def command(source, output, url, *options):
    patient = ["--backoff", "0.02", "--read-timeout", "2", "--progress", "never"]
    return cli_command("distill", source, "-o", output, "--teacher", url, "--model", "m", *patient, *options)


def run(*arguments, environment=None, **options):
    return subprocess.run(
        command(*arguments), capture_output=True, env={**os.environ, **(environment or {})}, timeout=200, **options
    )


def asked(server):
    """The questions that the server got, without the handshake's."""
    return [request for request in server.requests() if "completions" in request["path"]]


def answered(server):
    """How often each question was answered."""
    return Counter(request["question"] for request in asked(server) if request["fault"] == "ok")


def shards(folder):
    return [path.read_bytes() for path in sorted(folder.glob("part-*.arrow"))]


def test_2000_prompts_through_5_percent_faults_lose_nothing_and_ask_nothing_twice_that_was_answered(
    serve, prompts, tmp_path
):
    server = serve(faults={"rate": 0.05, "kinds": FAULTS}, hold=30)
    found = run(prompts(2000), tmp_path / "out", server.url, "--json")
    assert found.returncode == 0, found.stderr
    summary = json.loads(found.stdout)
    assert (summary["out"], summary["rejected"]) == (2000, {})
    assert len(answered(server)) == 2000
    assert set(answered(server).values()) == {1}
    met = Counter(request["fault"] for request in asked(server))
    assert sum(met[fault] for fault in FAULTS) > 60
    assert all(met[fault] for fault in FAULTS)
    assert sum(summary["teacher"]["setbacks"].values()) == sum(met[fault] for fault in FAULTS)
    assert server.stop() <= 33


def test_a_run_killed_five_times_ends_in_the_same_bytes_as_one_that_was_not(serve, prompts, tmp_path):
    source, concurrency = prompts(600), 8
    quick = ("--concurrency", str(concurrency), "--rows-per-shard", "150")
    undisturbed = serve(faults={"rate": 0.05, "kinds": ["500", "reset"]})
    assert run(source, tmp_path / "whole", undisturbed.url, *quick).returncode == 0
    server = serve(faults={"rate": 0.05, "kinds": ["500", "reset"]}, delay=0.02)
    for kill in range(1, 6):
        process = subprocess.Popen(command(source, tmp_path / "out", server.url, *quick), stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while len(server.requests()) < 100 * kill and time.monotonic() < deadline:
            time.sleep(0.02)
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        (journal,) = (tmp_path / "out.journal").glob("replies-*.jsonl")
        if kill % 2:
            os.truncate(journal, journal.stat().st_size - 7)
    assert run(source, tmp_path / "out", server.url, *quick).returncode == 0
    assert shards(tmp_path / "out") == shards(tmp_path / "whole")
    assert len(shards(tmp_path / "out")) == 4
    asked_again = sum(count - 1 for count in answered(server).values())
    assert len(answered(server)) == 600
    assert asked_again <= 5 * (concurrency + 1)


def test_more_samples_ask_only_for_the_new_ones_and_need_no_force(serve, prompts, tmp_path):
    source, server = prompts(10), serve()
    for samples in (1, 2, 4):
        found = run(source, tmp_path / "out", server.url, "--samples", str(samples), "--json")
        assert found.returncode == 0, found.stderr
        assert json.loads(found.stdout)["out"] == 10 * samples
        assert len(asked(server)) == 10 * samples
    assert run(source, tmp_path / "whole", serve().url, "--samples", "4").returncode == 0
    assert shards(tmp_path / "out") == shards(tmp_path / "whole")
    fewer = run(source, tmp_path / "out", server.url, "--samples", "3")
    assert fewer.returncode == 2
    assert run(source, tmp_path / "out", server.url, "--samples", "6", "--min-words", "6").returncode == 2
    assert len(asked(server)) == 40


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", [(), ("--stream",)], ids=["whole", "streamed"])
def test_2000_prompts_through_faults_and_five_kills_lose_nothing_and_ask_twice_only_what_was_under_way(
    serve, prompts, tmp_path, form, record_property
):
    source, concurrency, kills = prompts(2000), 32, 5
    options = ("--concurrency", str(concurrency), "--rows-per-shard", "500", "--json", *form)
    undisturbed = serve()
    assert run(source, tmp_path / "whole", undisturbed.url, *options).returncode == 0
    server = serve(faults={"rate": 0.05, "kinds": FAULTS}, hold=30, delay=0.05)
    torn = 0
    for kill in range(1, kills + 1):
        process = subprocess.Popen(command(source, tmp_path / "out", server.url, *options), stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while len(asked(server)) < 330 * kill and time.monotonic() < deadline:
            time.sleep(0.05)
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        (journal,) = (tmp_path / "out.journal").glob("replies-*.jsonl")
        if kill % 2:
            os.truncate(journal, journal.stat().st_size - 7)
            torn += 1
    found = run(source, tmp_path / "out", server.url, *options)
    assert found.returncode == 0, found.stderr
    summary, times = json.loads(found.stdout), answered(server)
    assert (summary["out"], summary["rejected"]) == (2000, {})
    assert shards(tmp_path / "out") == shards(tmp_path / "whole")
    assert len(times) == 2000
    asked_again = sum(count - 1 for count in times.values())
    assert asked_again <= kills * concurrency + torn
    met = Counter(request["fault"] for request in asked(server))
    assert all(met[fault] for fault in FAULTS)
    record_property("asked again", asked_again)
    print({"requests": len(asked(server)), "asked again": asked_again, "faults": dict(met)})


def test_an_endpoint_that_goes_away_ends_in_exit_code_75_and_the_same_command_finishes(serve, prompts, tmp_path):
    source = prompts(200)
    server = serve(delay=0.05)
    port = int(server.url.rsplit(":")[-1].split("/")[0])
    options = ("--give-up-after", "1", "--concurrency", "4")
    process = subprocess.Popen(command(source, tmp_path / "out", server.url, *options), stderr=subprocess.PIPE)
    while len(server.requests()) < 40:
        time.sleep(0.02)
    server.process.kill()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 75
    assert b"run the same command again: what was answered is kept" in said
    assert not (tmp_path / "out" / "manifest.json").exists()
    before = sum(len(path.read_text().splitlines()) for path in (tmp_path / "out.journal").glob("replies-*"))
    assert before > 0
    again = serve(port=port)
    found = run(source, tmp_path / "out", again.url, "--json", *options)
    assert found.returncode == 0, found.stderr
    summary = json.loads(found.stdout)
    assert (summary["out"], summary["teacher"]["kept"]) == (200, before)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_run_at_once_with_its_code_and_without_a_traceback(serve, prompts, tmp_path, number, code):
    server = serve(delay=5)
    process = subprocess.Popen(command(prompts(50), tmp_path / "out", server.url), stderr=subprocess.PIPE)
    while not asked(server):
        time.sleep(0.02)
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    assert process.returncode == code
    assert said.count(b"\n") == 1
    assert f"the same command resumes: replies so far are kept in {tmp_path / 'out'}.journal" in said.decode()


def test_a_storm_of_429_burns_nobodys_attempts(serve, prompts, tmp_path):
    server = serve(script=["429", "429-after", "503"] * 2)
    found = run(prompts(20), tmp_path / "out", server.url, "--attempts", "1", "--json")
    assert json.loads(found.stdout)["out"] == 20
    assert len(asked(server)) == 26


def test_the_key_is_sent_and_found_nowhere_else(serve, prompts, tmp_path):
    server = serve(script=["500", "400", "429"], secret=SECRET)
    (tmp_path / "key").write_text(SECRET + "\n")
    source = prompts(5)
    from_file = run(source, tmp_path / "a", server.url, "--api-key-file", tmp_path / "key", "--progress", "always")
    from_environment = run(source, tmp_path / "b", server.url, environment={"KOLIBRI_SFT_API_KEY": SECRET})
    assert from_file.returncode == from_environment.returncode == 0
    assert {request["authorization"] for request in server.requests()} == {f"Bearer {SECRET}"}
    written = [path for path in tmp_path.rglob("*") if path.is_file() and not path.name.startswith(("server", "key"))]
    assert len(written) > 6
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]
    assert all(SECRET.encode() not in found.stdout + found.stderr for found in (from_file, from_environment))


@pytest.mark.parametrize("key", [f"{SECRET}\nmore", f"{SECRET} more", f"{SECRET}é", f"{SECRET}\x07"])
def test_what_cannot_be_a_key_is_refused_before_it_is_sent_and_not_shown(prompts, tmp_path, key):
    found = run(prompts(1), tmp_path / "out", "http://127.0.0.1:9/v1", environment={"KOLIBRI_SFT_API_KEY": key})
    assert found.returncode == 1
    assert found.stderr.startswith(b"error: KOLIBRI_SFT_API_KEY: holds no key")
    assert SECRET.encode() not in found.stderr


def test_a_key_file_as_windows_writes_it_is_read(serve, prompts, tmp_path):
    server = serve()
    (tmp_path / "key").write_bytes(b"\xef\xbb\xbf" + SECRET.encode() + b"\r\n")
    assert run(prompts(1), tmp_path / "out", server.url, "--api-key-file", tmp_path / "key").returncode == 0
    assert {request["authorization"] for request in server.requests()} == {f"Bearer {SECRET}"}


def test_a_redirect_is_not_followed_with_the_key(serve, prompts, tmp_path):
    found = run(
        prompts(3), tmp_path / "out", serve(script=["redirect"]).url, environment={"KOLIBRI_SFT_API_KEY": SECRET}
    )
    assert found.returncode == 1
    assert b"redirects to elsewhere.example" in found.stderr


def kept(folder):
    return [line for path in folder.glob("replies-*") for line in path.read_text().splitlines()]


@pytest.mark.parametrize(("fault", "code"), [("402", 75), ("401", 1)])
def test_replies_under_way_when_a_run_has_to_end_are_kept(serve, prompts, tmp_path, fault, code):
    server = serve(script=["slow", "slow", "slow", fault], hold=1.5)
    assert run(prompts(20), tmp_path / "out", server.url).returncode == code
    assert len(kept(tmp_path / "out.journal")) == 3
    assert len(asked(server)) == 4


def test_a_teacher_that_refuses_every_question_ends_the_run_and_is_asked_again_when_it_is_fixed(
    serve, prompts, tmp_path
):
    source, server = prompts(20), serve(script=["400"] * 20)
    found = run(source, tmp_path / "out", server.url)
    assert found.returncode == 1
    assert b"the teacher refuses every question, 20 so far: HTTP 400: scripted 400" in found.stderr
    assert kept(tmp_path / "out.journal") == []
    fixed = run(source, tmp_path / "out", server.url, "--json")
    assert json.loads(fixed.stdout)["out"] == 20


def test_refusals_among_answers_are_final(serve, prompts, tmp_path):
    source, server = prompts(20), serve(script=["400", "ok", "400"])
    for _ in range(2):
        assert run(source, tmp_path / "out", server.url, "--force").returncode == 0
        assert len(asked(server)) == 20
    statuses = Counter(json.loads(line)["status"] for line in kept(tmp_path / "out.journal"))
    assert statuses == {200: 18, 400: 2}


def test_an_output_that_may_not_be_written_costs_no_request(serve, prompts, tmp_path):
    server, source = serve(), prompts(3)
    for name in ("taken", "finished"):
        (tmp_path / name).mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    (tmp_path / "finished" / "manifest.json").write_text("{}")
    (tmp_path / "file.jsonl").write_text("")
    for output, options, code, says in (
        (tmp_path / "taken", (), 2, b"not empty (it holds notes.txt)"),
        (tmp_path / "taken", ("--force",), 2, b"not empty (it holds notes.txt)"),
        (tmp_path / "finished", (), 2, b"holds a finished run"),
        (tmp_path / "file.jsonl", (), 2, b"exists; use --force"),
        ("/proc/nowhere/out", (), 1, b"/proc/nowhere"),
    ):
        found = run(source, output, server.url, *options)
        assert (found.returncode, found.stderr.count(b"\n")) == (code, 1)
        assert says in found.stderr
    assert server.requests() == []
    assert not list(tmp_path.glob("*.journal"))


def test_a_wrong_key_ends_the_run_at_once(serve, prompts, tmp_path):
    server = serve(script=["401"] * 100)
    found = run(prompts(50), tmp_path / "out", server.url)
    assert found.returncode == 1
    assert b"HTTP 401" in found.stderr
    assert b"is the key right?" in found.stderr
    assert len(server.requests()) < 10


def test_parts_of_an_array_job_ask_each_question_once_and_give_the_shards_of_one_run(serve, prompts, tmp_path):
    source, server = prompts(90), serve()
    rows = ("--rows-per-shard", "20")
    assert run(source, tmp_path / "whole", server.url, *rows).returncode == 0
    before = len(asked(server))
    for part in (1, 0, 2):
        assert run(source, tmp_path / "out", server.url, *rows, "--shard", f"{part}/3").returncode == 0
    assert shards(tmp_path / "out") == shards(tmp_path / "whole")
    assert (tmp_path / "out" / "manifest.json").exists()
    assert len(asked(server)) - before == 90
