"""distill in a real process against a real server: rows, openers, classes, the comparison, what is asked again."""

import json
from collections import Counter

import pyarrow as pa
import pytest

from sft_toolkit.teachers.openers import packaged_openers

ENGLISH_DRIFT = "Wait, let me check that again with more care"


def distill(run_cli, source, output, url, *options, stdin=None, code=0):
    common = ["--teacher", url, "--model", "m", "--backoff", "0.02", "--json"]
    found = run_cli("distill", source, "-o", output, *common, *options, stdin=stdin)
    assert found.returncode == code, found.stderr.decode()
    summary = found.stderr if str(output) == "-" else found.stdout
    return json.loads(summary.splitlines()[-1]) if code == 0 else found.stderr.decode()


def rows_of(folder):
    rows = []
    for path in sorted(folder.glob("part-*.arrow")):
        with pa.memory_map(str(path)) as source:
            rows += pa.ipc.open_file(source).read_all().to_pylist()
    return [{**row, "messages": json.loads(row["messages"]), "extra": json.loads(row["extra"])} for row in rows]


def test_a_row_is_the_prompt_with_the_teachers_trace_and_its_opener_exactly_once(run_cli, serve, prompts, tmp_path):
    server = serve()
    distill(run_cli, prompts(20), tmp_path / "out", server.url)
    rows = rows_of(tmp_path / "out")
    assert [row["id"] for row in rows] == [f"p{index}" for index in range(20)]
    phrases = packaged_openers("de").phrases["maths"]
    for row in rows:
        user, answer = row["messages"]
        opener = row["extra"]["trace"]["opener"]
        assert user == {"role": "user", "content": f"Frage {row['id'][1:]}"}
        assert opener in phrases
        assert answer["reasoning"].startswith(opener)
        assert answer["reasoning"].count(opener) == 1
        assert answer["language_verdict"]["stays"] is True
        assert row["extra"]["trace"]["class"] == "ok"
    assert len({row["extra"]["trace"]["opener"] for row in rows}) > 5
    assert all("Deutsch" in request["body"]["messages"][0]["content"] for request in asked(server))


def test_every_second_sample_of_a_comparison_goes_without_opener_and_both_rates_are_told(
    run_cli, serve, prompts, tmp_path
):
    server = serve()
    summary = distill(run_cli, prompts(10), tmp_path / "out", server.url, "--ab", "--samples", "4")
    rows = rows_of(tmp_path / "out")
    assert [row["id"] for row in rows[:5]] == ["p0:0", "p0:1", "p0:2", "p0:3", "p1:0"]
    assert [row["extra"]["trace"]["opener"] is None for row in rows] == [False, True] * 20
    assert summary["language"]["with opener"]["judged"] == summary["language"]["without opener"]["judged"] == 20
    assert summary["language"]["with opener"]["low"] == pytest.approx(20 / (20 + 1.96**2), abs=1e-3)
    last_roles = Counter(request["body"]["messages"][-1]["role"] for request in asked(server))
    assert last_roles == {"assistant": 20, "user": 20}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert manifest["counters"]["splits"]["with opener"] == {"stays": 20}


@pytest.mark.parametrize(
    ("style", "kind"),
    [
        ("reasoning", "ok"),
        ("thinking", "ok"),
        ("echo", "ok"),
        ("inline", "ok"),
        ("continued", "ok"),
        ("drift", "drift"),
        ("short", "too_short"),
        ("truncated", "truncated"),
        ("unclosed", "no_think_close"),
        ("empty", "empty"),
        ("refusal", "refused"),
        ("filtered", "refused"),
        ("misfiled", "parser_misfiled"),
    ],
)
def test_replies_are_kept_or_rejected_by_class(run_cli, serve, prompts, tmp_path, style, kind):
    summary = distill(run_cli, prompts(3), tmp_path / "out", serve(style=style).url)
    assert summary["rejected"] == ({} if kind == "ok" else {kind: 3})
    assert summary["out"] == (3 if kind == "ok" else 0)
    if kind == "drift":
        line = (tmp_path / "out" / "quarantine" / "part-00000.jsonl").read_text().splitlines()[0]
        assert ENGLISH_DRIFT in json.loads(line)["detail"]


@pytest.mark.parametrize("answer", ["Die Antwort lautet 42.", ""])
def test_a_trace_that_repeats_itself_is_rejected_and_kept_only_by_name(run_cli, serve, prompts, tmp_path, answer):
    looping = {"reasoning": "Das prüfe ich noch einmal nach. " * 40, "content": answer}
    server = serve(answers={"Frage 1": looping})
    summary = distill(run_cli, prompts(3), tmp_path / "a", server.url, "--journal", tmp_path / "j")
    assert (summary["out"], summary["rejected"]) == (2, {"repetitive": 1})
    keep = ("--keep", "repetitive", "--journal", tmp_path / "j")
    distill(run_cli, prompts(3), tmp_path / "b", server.url, *keep)
    (row,) = rows_of(tmp_path / "b")
    assert row["extra"]["trace"]["class"] == "repetitive"
    assert row["messages"][-1]["loop"]["repeats"] == 40


def test_a_comparison_reports_rates_by_domain_and_by_opener(run_cli, serve, prompts, tmp_path):
    drifting = {"reasoning": f"Zuerst rechne ich das aus. {ENGLISH_DRIFT}.", "content": "42"}
    url = serve(answers={"Frage 1": drifting}).url
    summary = distill(run_cli, prompts(4), tmp_path / "out", url, "--ab", "--samples", "2")
    by_domain, by_opener = summary["language_by_domain"], summary["language_by_opener"]
    assert {name: (rate["judged"], rate["stays"]) for name, rate in by_domain.items()} == {
        "math, with opener": (4, 3),
        "math, without opener": (4, 3),
    }
    assert sum(rate["judged"] for rate in by_opener.values()) == 4
    assert sum(rate["stays"] for rate in by_opener.values()) == 3
    assert set(by_opener) <= set(packaged_openers("de").phrases["maths"])
    assert list(summary["language"]) == ["with opener", "without opener"]


def test_what_the_server_refuses_among_its_answers_is_rejected(run_cli, serve, prompts, tmp_path):
    summary = distill(run_cli, prompts(3), tmp_path / "out", serve(script=["400", "ok", "400"]).url)
    assert (summary["out"], summary["rejected"]) == (1, {"refused": 2})


def test_classes_that_are_asked_for_are_kept_with_their_class_on_the_record(run_cli, serve, prompts, tmp_path):
    url = serve(style="drift").url
    distill(run_cli, prompts(3), tmp_path / "out", url, "--keep", "ok", "--keep", "drift")
    assert [row["extra"]["trace"]["class"] for row in rows_of(tmp_path / "out")] == ["drift"] * 3


def test_a_run_that_is_repeated_asks_nothing_and_one_with_more_samples_asks_only_those(
    run_cli, serve, prompts, tmp_path
):
    server, source = serve(), prompts(10)
    distill(run_cli, source, tmp_path / "a", server.url, "--journal", tmp_path / "j")
    before = len(asked(server))
    assert before == 10
    summary = distill(run_cli, source, tmp_path / "b", server.url, "--journal", tmp_path / "j")
    assert (summary["teacher"]["kept"], summary["teacher"]["answered"], len(asked(server))) == (0, 0, before)
    distill(run_cli, source, tmp_path / "c", server.url, "--journal", tmp_path / "j", "--samples", "3")
    assert len(asked(server)) == 30
    assert (tmp_path / "a" / "part-00000.arrow").read_bytes() == (tmp_path / "b" / "part-00000.arrow").read_bytes()


def test_replies_are_judged_anew_without_a_server(run_cli, serve, prompts, tmp_path):
    server, source = serve(style="short"), prompts(5)
    first = distill(run_cli, source, tmp_path / "a", server.url, "--journal", tmp_path / "j")
    server.stop()
    again = ("--journal", tmp_path / "j", "--rejudge", "--min-words", "0")
    second = distill(run_cli, source, tmp_path / "b", server.url, *again)
    assert (first["out"], second["out"]) == (0, 5)


def test_judging_anew_takes_the_teacher_from_the_journal(run_cli, serve, prompts, tmp_path):
    server, source = serve(), prompts(5)
    first = distill(run_cli, source, tmp_path / "a", server.url, "--journal", tmp_path / "j", "--temperature", "0.5")
    server.stop()
    again = ("distill", source, "-o", tmp_path / "b", "--rejudge", "--json")
    judged = run_cli(*again, "--journal", tmp_path / "j")
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["out"] == first["out"] == 5
    assert (tmp_path / "a" / "part-00000.arrow").read_bytes() == (tmp_path / "b" / "part-00000.arrow").read_bytes()
    for arguments, says in (
        ((*again, "--journal", tmp_path / "none"), b"none: no journal; --rejudge reads the replies of an earlier run"),
        ((*again, "--journal", tmp_path / "j", "--top-p", "0.5"), b"was begun with another parameters"),
        ((*again, "--journal", tmp_path / "j", "--model", "x"), b"was begun with another model"),
        (("distill", source, "-o", tmp_path / "c"), b"--teacher is missing"),
    ):
        refused = run_cli(*arguments)
        assert refused.returncode == 2 and says in refused.stderr, refused.stderr
    (tmp_path / "j" / "config.json").write_text("{}")
    assert b"config.json: not what a journal holds" in run_cli(*again, "--journal", tmp_path / "j").stderr


def test_a_changed_configuration_is_refused_by_name_before_anything_is_asked(run_cli, serve, prompts, tmp_path):
    server, source = serve(), prompts(3)
    journal = ("--journal", tmp_path / "j")
    distill(run_cli, source, tmp_path / "a", server.url, *journal)
    before = len(asked(server))
    said = distill(run_cli, source, tmp_path / "b", server.url, *journal, "--temperature", "0.5", code=2)
    assert "was begun with another parameters" in said
    assert len(asked(server)) == before
    distill(run_cli, source, tmp_path / "b", server.url, *journal, "--temperature", "0.5", "--force")
    assert len(asked(server)) == 2 * before


def test_questions_that_are_given_up_are_counted_and_asked_again_by_the_same_command(run_cli, serve, prompts, tmp_path):
    server, source = serve(script=["ok", "500", "500"]), prompts(3)
    options = ("--attempts", "2", "--concurrency", "1")
    first = distill(run_cli, source, tmp_path / "out", server.url, *options)
    assert (first["out"], first["rejected"]) == (2, {"retry_exhausted": 1})
    second = distill(run_cli, source, tmp_path / "out", server.url, *options)
    assert (second["out"], second["teacher"]["answered"], second["teacher"]["kept"]) == (3, 1, 2)


def test_records_flow_from_stdin_to_stdout_where_the_journal_has_a_place(run_cli, serve, prompts, tmp_path):
    server, source = serve(), prompts(3)
    common = ["--teacher", server.url, "--model", "m"]
    found = run_cli("distill", "-", *common, "--journal", tmp_path / "j", stdin=source.read_bytes())
    assert [json.loads(line)["id"] for line in found.stdout.splitlines()] == ["p0", "p1", "p2"]
    found = run_cli("distill", "-", *common, stdin=source.read_bytes())
    assert found.returncode == 2
    assert b"name it with --journal" in found.stderr


def test_the_output_must_be_free_before_anything_is_asked(run_cli, serve, prompts, tmp_path):
    server = serve()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("precious")
    distill(run_cli, prompts(3), tmp_path / "out", server.url, code=2)
    assert asked(server) == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"id": "p0", "messages": [{"role": "user", "content": "x"}]}\n', "'p0' occurs more than once"),
        (b"{\n", "JSON"),
    ],
)
def test_faulty_input_is_told_before_anything_is_asked(run_cli, serve, prompts, tmp_path, line, says):
    server, source = serve(), prompts(3)
    source.write_bytes(source.read_bytes() + line)
    assert says in distill(run_cli, source, tmp_path / "out", server.url, code=1)
    assert asked(server) == []


def test_a_dry_run_counts_the_questions_and_asks_none(run_cli, serve, prompts, tmp_path):
    server = serve()
    summary = distill(run_cli, prompts(7), tmp_path / "out", server.url, "--samples", "3", "-n")
    assert (summary["in"], summary["notes"]) == (7, {"questions": 21})
    assert asked(server) == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--ab"], "give an even number of samples"),
        (["--keep", "good"], "the classes are ok, drift"),
        (["--ab", "--samples", "2", "--prefill", "none"], "sends none"),
        (["--teacher", "http://me:secret@host/v1"], "a URL is no place for keys"),
        (["--teacher", "host"], "not a URL"),
        (["--parameter", "top_k"], "not NAME=JSON"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(run_cli, prompts, tmp_path, options, says):
    said = distill(run_cli, prompts(1), tmp_path / "out", "http://127.0.0.1:9/v1", *options, code=2)
    assert says in said
    assert "secret" not in said


def asked(server):
    """The questions that the server got, without the handshake's."""
    return [request for request in server.requests() if "completions" in request["path"]]
