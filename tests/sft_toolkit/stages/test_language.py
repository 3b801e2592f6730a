"""The language command in a real process: verdicts on records, counts, and what is rejected."""

import json

GERMAN = "Wir teilen die Strecke durch die Zeit und erhalten so die mittlere Geschwindigkeit."
DRIFTING = f"{GERMAN} Wait, let me check that again. Ja, das stimmt."


def record(identifier, reasoning, prompt="Wie schnell ist das Auto?", **more):
    messages = [{"role": "user", "content": prompt}, {"role": "assistant", "reasoning": reasoning, "content": "75"}]
    return json.dumps({"id": identifier, "dataset": "d", "messages": messages, **more}).encode() + b"\n"


def judge(run_cli, *options, lines):
    found = run_cli("language", "-", "--json", *options, stdin=b"".join(lines))
    assert found.returncode == 0, found.stderr
    return [json.loads(line) for line in found.stdout.splitlines()], json.loads(found.stderr)


def test_each_message_with_reasoning_gets_its_verdict_and_the_rate_its_interval(run_cli):
    rows, summary = judge(run_cli, lines=[record("a", GERMAN), record("b", DRIFTING), record("c", None)])
    verdicts = [row["messages"][1].get("language_verdict") for row in rows]
    assert verdicts[0] == {"language": "de", "stays": True, "judged": 2, "share": 1.0}
    assert verdicts[1]["stays"] is False
    assert verdicts[1]["offending"]["text"] == "Wait, let me check that again"
    assert verdicts[2] is None
    rate = summary["language"]["d"]
    assert (rate["judged"], rate["stays"], rate["rate"]) == (2, 1, 0.5)
    assert abs(rate["low"] - 0.0945) < 5e-4
    assert abs(rate["high"] - 0.9055) < 5e-4


def test_drift_is_rejected_with_the_first_offending_words_where_that_is_asked_for(run_cli, tmp_path):
    rejected = tmp_path / "rejected.jsonl"
    rows, summary = judge(
        run_cli,
        "--drop",
        "--quarantine",
        rejected,
        "--on-error",
        "quarantine",
        lines=[record("a", DRIFTING), record("b", GERMAN)],
    )
    assert [row["id"] for row in rows] == ["b"]
    assert summary["rejected"] == {"drift": 1}
    assert "Wait, let me check that again" in json.loads(rejected.read_bytes())["detail"]


def test_what_the_prompt_says_in_english_is_no_drift(run_cli):
    prompt = "Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in May."
    rows, _ = judge(run_cli, lines=[record("a", f"Die Aufgabe sagt: {prompt} {GERMAN}", prompt)])
    assert rows[0]["messages"][1]["language_verdict"]["stays"] is True


def test_marks_of_translation_are_recorded_and_counted(run_cli):
    rows, summary = judge(run_cli, lines=[record("a", "Die Wahrscheinlichkeit beträgt also 0.45 und ist damit klein.")])
    assert rows[0]["messages"][1]["language_verdict"]["artefacts"] == [{"kind": "decimal_point", "text": "0.45"}]
    assert summary["notes"] == {"artefact: decimal_point": 1}


def test_a_language_that_cannot_be_told_is_a_usage_error(run_cli):
    found = run_cli("language", "-", "--language", "xx", stdin=record("a", GERMAN))
    assert found.returncode == 2
    assert b"--language xx: not a language" in found.stderr
