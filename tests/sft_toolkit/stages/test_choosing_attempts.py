"""score and select: verdicts of a prompt's attempts, windows, caps, preferences, and the same bytes however it runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.errors import UsageError
from sft_toolkit.json_text import decode, encode
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.stages.choosing.format_score import format_multiplier
from sft_toolkit.stages.choosing.score import ScoreOptions, run_score
from sft_toolkit.stages.choosing.select import SelectOptions, parse_window, run_select

Record = dict[str, Any]


def attempt(name: str, prompt: str, answer: str, key: Any, **more: Any) -> Record:
    assistant = {"role": "assistant", "content": answer, "reasoning": more.pop("reasoning", "")}
    return {"id": name, "answer": key, "messages": [{"role": "user", "content": prompt}, assistant], **more}


def eight(prompt: str, right: int, key: int = 36) -> list[Record]:
    answers = [f"Es sind {key if index < right else 100 + index}." for index in range(8)]
    return [attempt(f"{prompt}{index}", prompt, text, key) for index, text in enumerate(answers)]


def write(path: Path, records: list[Record]) -> str:
    path.write_bytes(b"".join(encode(record) + b"\n" for record in records))
    return str(path)


def read(path: Path) -> list[Record]:
    return [decode(line) for line in path.read_bytes().splitlines()]


def stream(folder: Path, name: str, source: str) -> RunOptions:
    return RunOptions(
        inputs=[source], output=str(folder / f"{name}.jsonl"), quarantine_file=str(folder / f"{name}.rejected.jsonl")
    )


def scored(tmp_path: Path, records: list[Record], **how: Any) -> tuple[list[Record], list[Record], Summary]:
    source = write(tmp_path / "in.jsonl", records)
    options = {"answer_key": "answer", "verifier": "number", **how}
    summary = run_score(ScoreOptions(**options), stream(tmp_path, "scored", source))
    return read(tmp_path / "scored.jsonl"), read(tmp_path / "scored.rejected.jsonl"), summary


def selected(tmp_path: Path, records: list[Record], **how: Any) -> tuple[list[Record], list[Record]]:
    scored(tmp_path, records)
    run_select(SelectOptions(**how), stream(tmp_path, "kept", str(tmp_path / "scored.jsonl")))
    return read(tmp_path / "kept.jsonl"), read(tmp_path / "kept.rejected.jsonl")


def test_a_score_holds_the_verdict_and_what_the_prompt_has_in_common(tmp_path: Path) -> None:
    rows, _, _ = scored(tmp_path, [*eight("p", 2), attempt("q", "q", "Keine Ahnung", 3)])
    assert rows[0]["score"] == {
        "verdict": "right",
        "extracted": "36",
        "why": None,
        "verifier": "number",
        "attempts": 8,
        "right": 2,
        "pass_rate": 0.25,
        "majority": "36",
        "reference_doubtful": False,
    }
    assert [row["score"]["verdict"] for row in rows] == ["right"] * 2 + ["wrong"] * 6 + ["no_answer"]


def test_a_planted_wrong_reference_is_doubtful_and_none_is_invented(tmp_path: Path) -> None:
    agreeing = [attempt(f"a{n}", "a", "Es sind 36.", 63) for n in range(6)]
    split = [attempt(f"b{n}", "b", f"Es sind {36 if n < 3 else n}.", 63) for n in range(8)]
    few = [attempt(f"c{n}", "c", "Es sind 36.", 63) for n in range(3)]
    rows, _, _ = scored(tmp_path, [*agreeing, *split, *few, *eight("d", 8)])
    assert {row["id"][0] for row in rows if row["score"]["reference_doubtful"]} == {"a"}


def test_records_without_a_reference_or_with_differing_ones_are_rejected_and_name_each_other(tmp_path: Path) -> None:
    records = [attempt("a", "p", "1", None), attempt("b", "q", "1", 1), attempt("c", "q", "1", 2)]
    rows, rejected, _ = scored(tmp_path, records)
    assert rows == []
    assert [(line["record"]["id"], line["reason"], line["partner"]) for line in rejected] == [
        ("a", "no_reference", []),
        ("b", "references_differ", ["c"]),
        ("c", "references_differ", ["b"]),
    ]


def test_attempts_at_one_prompt_are_those_of_a_field_where_it_is_there(tmp_path: Path) -> None:
    records = [attempt(name, name, "1", 1, prompt_id="same") for name in "ab"]
    assert [row["score"]["attempts"] for row in scored(tmp_path, records)[0]] == [2, 2]


def test_a_window_a_cap_and_a_preference_choose_among_right_attempts(tmp_path: Path) -> None:
    rows = [*eight("hard", 1), *eight("good", 4), *eight("easy", 8), *eight("few", 2)[:5]]
    rows[9]["messages"][1]["reasoning"] = "lang " * 9
    kept, rejected = selected(tmp_path, rows, low=parse_window("2..5")[0], high=5, of=8, per_prompt=2)
    assert [(row["id"], row["sampling_weight"]) for row in kept] == [("good0", 0.5), ("good2", 0.5)]
    assert Counter(line["reason"] for line in rejected) == {
        "not_right": 7 + 4 + 3,
        "pass_rate_low": 1,
        "pass_rate_high": 8,
        "too_few_attempts": 2,
        "over_cap": 2,
    }
    over = [(line["record"]["id"], line["partner"]) for line in rejected if line["reason"] == "over_cap"]
    assert over == [("good1", ["good0", "good2"]), ("good3", ["good0", "good2"])]


@pytest.mark.parametrize(("prefer", "chosen"), [("longest", "good1"), ("format", "good0"), ("random", None)])
def test_each_preference_names_its_own(prefer: str, chosen: str | None, tmp_path: Path) -> None:
    rows = eight("good", 4)
    rows[1]["messages"][1]["reasoning"] = "lang " * 9
    rows[1]["messages"][1]["finish_reason"] = "length"
    kept, _ = selected(tmp_path, rows, per_prompt=1, prefer=prefer)
    assert len(kept) == 1
    assert chosen in (None, kept[0]["id"])


def test_a_window_that_holds_nothing_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        SelectOptions(low=9, of=8)
    with pytest.raises(UsageError):
        parse_window("two")


@pytest.mark.parametrize(
    ("violations", "expected"),
    [
        ({"calls": [1.0], "finish": [1.0]}, 0.625),
        ({"calls": [1.0], "finish": [1.0, 0.0, 0.0, 0.0]}, 0.688),
        ({"calls": [1.0], "finish": [0.0]}, 0.750),
        ({"calls": [1.0] + [0.0] * 24}, 0.95),
        ({"calls": [0.0], "finish": [0.0]}, 1.0),
    ],
)
def test_the_multiplier_of_form_gives_the_reports_numbers(violations: dict[str, list[float]], expected: float) -> None:
    assert format_multiplier(violations) == pytest.approx(expected, abs=5e-4)


def test_shards_are_the_same_with_one_worker_two_and_in_parts(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", [record for n in range(6) for record in eight(f"p{n}", n)])
    how = ScoreOptions("answer", "number")

    def folder(name: str, **more: Any) -> list[bytes]:
        for part in more.pop("parts", [(0, 1)]):
            run_score(how, RunOptions([source], output=str(tmp_path / name), rows_per_shard=10, part=part, **more))
        return [path.read_bytes() for path in sorted((tmp_path / name).glob("part-*.arrow"))]

    one = folder("one", workers=1)
    assert len(one) == 5
    assert one == folder("two", workers=2) == folder("parts", workers=1, parts=[(0, 2), (1, 2)])
