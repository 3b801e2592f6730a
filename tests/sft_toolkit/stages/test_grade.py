"""Grading: which text is graded, whose labels count, the held-out checks, and the folder that holds a student."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sft_toolkit.conversation import Conversation, Message
from sft_toolkit.errors import RecordError, ToolkitError, UsageError
from sft_toolkit.labelers.grading_metrics import agreement
from sft_toolkit.running.options import RunOptions
from sft_toolkit.stage import Outcome
from sft_toolkit.stages.grade.apply import GradeStage
from sft_toolkit.stages.grade.collect import ColumnLabels, read_vote
from sft_toolkit.stages.grade.fit import Report, fit_grader
from sft_toolkit.stages.grade.labels import DEFAULT_LEVELS, LabelColumn, parse_levels, prompt_text, settle
from sft_toolkit.stages.grade.model import read_grader
from sft_toolkit.stages.grade.rubric import default_examples, default_rubric, messages
from sft_toolkit.teachers.replies import Reply

COLUMN = LabelColumn("label", DEFAULT_LEVELS)


def conversation(*messages: Message, name: str = "r", **fields: Any) -> Conversation:
    return Conversation(
        name, list(messages) or [Message("user", "What is 1 + 1?"), Message("assistant", "2")], **fields
    )


def sums(path: Path, count: int, datasets: tuple[str, ...] = ("a", "b", "c"), by_dataset: bool = False) -> Path:
    """Prompts that ask for sums, longer by level; with `by_dataset` all of one length, the level is its data set's."""
    rng = np.random.default_rng(1)
    with path.open("w") as file:
        for number in range(count):
            place = number % len(datasets)
            level, dataset = (place if by_dataset else int(rng.integers(3))), datasets[place]
            terms = 6 if by_dataset else 2 * 3**level
            text = f"{dataset}: " + " + ".join(map(str, rng.integers(1, 99, terms)))
            row = {"id": f"r{number}", "dataset": dataset, "label": DEFAULT_LEVELS[level]}
            file.write(json.dumps({**row, "messages": [{"role": "user", "content": text}]}) + "\n")
    return path


def run_of(path: Path, **options: Any) -> RunOptions:
    return RunOptions(inputs=[str(path)], workers=1, **options)


def test_the_prompt_is_what_the_user_says_before_the_assistant_speaks() -> None:
    spoken = conversation(
        Message("system", "S"),
        Message("user", "one"),
        Message("user", [{"type": "text", "text": "two"}, {"type": "image"}]),
        Message("assistant", "A"),
        Message("user", "three"),
    )
    assert prompt_text(spoken) == "one\n\ntwo"
    for silent in (
        conversation(Message("assistant", "A"), Message("user", "late")),
        conversation(Message("user", " ")),
    ):
        with pytest.raises(RecordError, match="no text of a user"):
            prompt_text(silent)


def test_votes_are_settled_by_their_median_and_the_easier_of_two() -> None:
    levels = ("a", "b", "c", "d")
    assert [settle(votes, levels) for votes in ("d", "ad", "dda", "abcd", "cccab")] == ["d", "a", "d", "b", "c"]


def test_labels_come_from_a_column_as_one_or_as_votes() -> None:
    records = [
        conversation(name="one", extra={"label": "hard"}),
        conversation(name="votes", extra={"label": ["easy", "hard", "hard"], "difficulty_confidence": 0.5}),
        conversation(name="none", extra={"label": None}),
    ]
    outcome = Outcome(quarantine=False)
    one, votes = ColumnLabels(COLUMN).process(records, outcome)
    assert (one.difficulty, one.extra) == ("hard", {"label": "hard"})
    assert votes.difficulty == "hard"
    assert votes.extra["difficulty_votes"] == ["easy", "hard", "hard"]
    assert votes.extra["difficulty_agreement"] == pytest.approx(2 / 3, abs=1e-4)
    assert "difficulty_confidence" not in votes.extra
    assert outcome.counters.rejected == {"unlabelled": 1}
    with pytest.raises(RecordError, match=r"record x: label is 'tricky', not one of easy, medium, hard"):
        list(ColumnLabels(COLUMN).process([conversation(name="x", extra={"label": "tricky"})], outcome))


@pytest.mark.parametrize(
    ("text", "vote"),
    [
        ("hard", "hard"),
        ("**Medium**.", "medium"),
        ("Not easy: I would say hard!", "hard"),
        ("very hard", "very hard"),
        ("hardly", None),
        ("", None),
    ],
)
def test_a_vote_is_the_level_that_a_reply_names_last(text: str, vote: str | None) -> None:
    assert read_vote(Reply(content=text), ("easy", "medium", "hard", "very hard")) == vote


def test_no_reply_and_a_refusal_are_no_votes() -> None:
    assert read_vote(None, DEFAULT_LEVELS) is None
    assert read_vote(Reply(content="hard", refusal="HTTP 400"), DEFAULT_LEVELS) is None


def test_levels_are_two_or_more_different_names() -> None:
    assert parse_levels("low, high") == ("low", "high")
    assert "low, high" in default_rubric(("low", "high"))
    for text in ("one", "a,a", "a,,b", ""):
        with pytest.raises(UsageError, match="not two or more different names"):
            parse_levels(text)


def test_a_teacher_is_shown_the_hardest_the_middle_and_the_easiest_level_before_it_is_asked() -> None:
    for levels, shown in ((DEFAULT_LEVELS, ["hard", "medium", "easy"]), ("01234", ["4", "2", "0"]), ("ab", ["b", "a"])):
        turns = messages("What is 1 + 1?", "R", default_examples(levels))
        assert turns[0] == {"role": "system", "content": "R"}
        assert [turn["content"] for turn in turns if turn["role"] == "assistant"] == shown
        assert [turn["role"] for turn in turns[1:]] == [*["user", "assistant"] * len(shown), "user"]
        assert "<request>\nWhat is 1 + 1?\n</request>" in turns[-1]["content"]


def test_a_fitted_student_labels_and_says_how_sure_it_is(tmp_path: Path) -> None:
    path = sums(tmp_path / "in.jsonl", 200)
    grader, report, counters = fit_grader("linear", COLUMN, 0, run_of(path))
    assert counters.records_out == 200
    assert report.seen.exact > 0.9 and report.unseen is not None and report.unseen.exact > 0.9
    assert report.unseen.prompts == 200 and 20 < report.seen.prompts < 60
    assert not report.collapses
    grader.write(tmp_path / "g")
    ask = Message("user", "a: 4 + 3")
    records = [conversation(ask, extra={"difficulty_votes": ["easy"]}), conversation(ask, difficulty="mine")]
    easy, other = GradeStage(str(tmp_path / "g")).process(records, Outcome(False))
    assert easy.difficulty == other.difficulty == "easy"
    assert 1 / 3 < easy.extra["difficulty_confidence"] <= 1
    assert "difficulty_votes" not in easy.extra
    assert easy.provenance[-1]["stage"] == "grade"
    (kept,) = GradeStage(str(tmp_path / "g"), keep=True).process([conversation(difficulty="mine")], Outcome(False))
    assert (kept.difficulty, kept.extra, kept.provenance) == ("mine", {}, [])


def test_what_is_learned_of_data_sets_alone_collapses_where_they_are_left_out(tmp_path: Path) -> None:
    path = sums(tmp_path / "in.jsonl", 200, by_dataset=True)
    _, report, _ = fit_grader("linear", COLUMN, 0, run_of(path))
    assert report.seen.exact > 0.95
    assert report.unseen is not None and report.unseen.exact == 0
    assert report.collapses and report.to_json()["collapses"] is True
    assert report.useless and report.to_json()["useless"] is True
    seen, unseen = report.calibrations
    assert seen.confidence < 0.5 and unseen.confidence < 0.6


@pytest.mark.parametrize(
    ("unseen", "collapses"),
    [([[8, 2], [2, 8]], False), ([[5, 5], [5, 5]], True), ([[90, 2], [6, 3]], True), ([[8, 0], [2, 2]], False)],
)
def test_half_the_kappa_or_the_majority_is_the_bound(unseen: list[list[int]], collapses: bool) -> None:
    def graded(table: list[list[int]]):
        cells = [(t, g) for t in (0, 1) for g in (0, 1) for _ in range(table[t][g])]
        return agreement(np.array([t for t, _ in cells]), np.array([g for _, g in cells]), 2)

    report = Report(("e", "h"), graded([[9, 1], [1, 9]]), graded(unseen), 2)
    assert report.collapses is collapses


def test_one_data_set_cannot_be_left_out_and_equal_prompts_stay_on_one_side(tmp_path: Path) -> None:
    path = sums(tmp_path / "in.jsonl", 60, ("only",))
    doubled = tmp_path / "twice.jsonl"
    doubled.write_text(path.read_text() + path.read_text().replace('"id": "r', '"id": "s'))
    _, report, _ = fit_grader("linear", COLUMN, 0, run_of(path))
    _, twice, _ = fit_grader("linear", COLUMN, 0, run_of(doubled))
    assert report.unseen is None and not report.collapses
    assert twice.seen.prompts == 2 * report.seen.prompts


def test_too_few_labels_or_one_level_are_refused(tmp_path: Path) -> None:
    path = sums(tmp_path / "in.jsonl", 19)
    with pytest.raises(ToolkitError, match="19 labels of 3 levels: too few"):
        fit_grader("linear", COLUMN, 0, run_of(path))
    with pytest.raises(ToolkitError, match="no record has a label under nothing"):
        fit_grader("linear", LabelColumn("nothing", DEFAULT_LEVELS), 0, run_of(path))


@pytest.mark.parametrize("student", ["linear", "ordinal", "fasttext"])
def test_a_folder_holds_no_pickle_and_comes_back_bit_for_bit(tmp_path: Path, student: str) -> None:
    grader, report, _ = fit_grader(student, COLUMN, 0, run_of(sums(tmp_path / "in.jsonl", 60)))
    grader.write(tmp_path / "g")
    assert {path.name for path in (tmp_path / "g").iterdir()} == {"grader.json", "student.safetensors"}
    again = read_grader(tmp_path / "g")
    assert again.levels == DEFAULT_LEVELS and again.student == student
    assert again.report["random split"]["confusion"] == report.seen.confusion.tolist()
    texts = ["1 + 2", "Beweise, dass 1 + 2 + 3 + 4 = 10."]
    assert (again.probabilities(texts) == grader.probabilities(texts)).all()


def test_a_folder_that_is_none_or_was_changed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match=r"grader.json: No such file"):
        read_grader(tmp_path / "g")
    grader, _, _ = fit_grader("linear", COLUMN, 0, run_of(sums(tmp_path / "in.jsonl", 60)))
    grader.write(tmp_path / "g")
    arrays, description = tmp_path / "g" / "student.safetensors", tmp_path / "g" / "grader.json"
    whole = arrays.read_bytes()
    arrays.write_bytes(whole[:-1])
    with pytest.raises(ToolkitError, match=r"not the file that grader.json describes"):
        read_grader(tmp_path / "g")
    arrays.write_bytes(whole)
    description.write_text(description.read_text().replace('"features": 3', '"features": 99'))
    with pytest.raises(ToolkitError, match="fitted on other features"):
        read_grader(tmp_path / "g")
    description.write_text("{}")
    with pytest.raises(ToolkitError, match="not a grader of this tool"):
        read_grader(tmp_path / "g")
