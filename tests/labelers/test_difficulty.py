"""Students of difficulty: what they see, what they learn, and that a label depends on the prompt alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from sft_toolkit.labelers import fasttext_student, ordinal
from sft_toolkit.labelers.difficulty import STUDENTS, features, prompts_of, stacked
from sft_toolkit.labelers.prompt_features import BUCKETS, MOST_CHARACTERS, SURFACE, ngrams, shortened, surface

WORDS = ("add", "subtract", "prove", "the", "sum", "of", "integral", "7", "12", "4096", "find", "all", "x", "such")


def sums(count: int, levels: int = 3, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Prompts that ask for a sum, of 2, 6 or 18 … numbers by level."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, levels, count)
    texts = [f"Wie groß ist {' + '.join(map(str, rng.integers(1, 999, 2 * 3**level)))}?" for level in labels.tolist()]
    return texts, labels


def test_the_surface_of_a_prompt_worked_by_hand() -> None:
    text = "Let x = 12, y = (3 + 450).\nFind x + Y!"
    found = dict(zip(SURFACE, surface([text])[0], strict=True))
    counts = {
        "characters": 38, "words": 9, "distinct_words": 8, "word_length": 17 / 9, "longest_word": 4, "numbers": 3,
        "longest_number": 3, "digits": 6, "lines": 1, "longest_line": 26, "clauses": 3, "operators": 4, "brackets": 2,
    }  # fmt: skip
    assert {name: found[name] for name in counts} == pytest.approx({name: np.log1p(n) for name, n in counts.items()})
    assert found["digit_share"] == pytest.approx(6 / 38)
    assert found["upper_share"] == pytest.approx(3 / 38)


def test_ngrams_are_words_marks_and_pairs_of_neighbours_in_small_letters() -> None:
    counts = ngrams(["a + A", "a", "+", "a +", "+ a"])
    assert counts.sum(axis=1).ravel().tolist() == [[5, 1, 1, 3, 3]]
    whole, a, plus, first_pair, second_pair = (counts[row].toarray() for row in range(5))
    assert (whole == 2 * a + plus + (first_pair - a - plus) + (second_pair - a - plus)).all()
    assert counts.shape == (5, BUCKETS)


def test_an_empty_prompt_and_one_without_words_have_features() -> None:
    prompts = prompts_of(["", "\n\n"])
    assert prompts.grams.nnz == 0
    assert np.isfinite(prompts.surface).all()


def test_of_a_long_prompt_beginning_and_end_are_seen() -> None:
    text = "a" * MOST_CHARACTERS + "b" * MOST_CHARACTERS
    assert shortened(text) == "a" * (MOST_CHARACTERS // 2) + "\n" + "b" * (MOST_CHARACTERS // 2)
    assert shortened("a" * MOST_CHARACTERS) == "a" * MOST_CHARACTERS


@pytest.mark.parametrize("student", STUDENTS)
def test_a_student_learns_what_can_be_learned(student: str) -> None:
    texts, labels = sums(600)
    kind = STUDENTS[student]
    arrays = kind.fit(prompts_of(texts), labels, 3)
    others, true = sums(300, seed=1)
    assert (kind.probabilities(arrays, prompts_of(others)).argmax(axis=1) == true).mean() > 0.95


@pytest.mark.parametrize("student", STUDENTS)
def test_the_same_labels_give_the_same_bits(student: str) -> None:
    texts, labels = sums(80)
    first, second = (STUDENTS[student].fit(prompts_of(texts), labels, 3) for _ in range(2))
    assert all((first[name] == second[name]).all() for name in first)


@pytest.mark.parametrize("student", STUDENTS)
@settings(max_examples=30, deadline=None)
@given(texts=st.lists(st.lists(st.sampled_from(WORDS)).map(" ".join), min_size=2, max_size=6))
def test_a_prompt_has_the_same_bits_of_probability_whatever_stands_beside_it(student: str, texts: list[str]) -> None:
    kind, arrays = STUDENTS[student], fitted(student)
    together = kind.probabilities(arrays, prompts_of(texts))
    alone = np.concatenate([kind.probabilities(arrays, prompts_of([text])) for text in texts])
    assert (together == alone).all()
    assert together.sum(axis=1) == pytest.approx(1)


_fitted: dict[str, object] = {}


def fitted(student: str):
    if student not in _fitted:
        texts, labels = sums(60)
        _fitted[student] = STUDENTS[student].fit(prompts_of(texts), labels, 3)
    return _fitted[student]


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_the_linear_student_is_scikit_learns_logistic_regression(levels: int) -> None:
    texts, labels = sums(120, levels)
    prompts = prompts_of(texts)
    arrays = STUDENTS["linear"].fit(prompts, labels, levels)
    columns = features(arrays, prompts)
    reference = LogisticRegression(C=1.0, max_iter=200, tol=1e-3).fit(columns, labels).predict_proba(columns)
    assert STUDENTS["linear"].probabilities(arrays, prompts) == pytest.approx(reference, abs=1e-5)


def test_rows_of_tf_idf_have_length_one_and_rare_ngrams_weigh_more() -> None:
    texts = ["common rare", *["common"] * 8]
    prompts = prompts_of(texts)
    arrays = STUDENTS["linear"].fit(prompts, np.array([0, 1] * 4 + [0]), 2)
    grams = features(arrays, prompts)[:, :BUCKETS]
    assert np.sqrt(grams.multiply(grams).sum(axis=1)) == pytest.approx(1)
    assert sorted(set(arrays["idf"].round(4).tolist())) == pytest.approx(
        [1.0, np.log(10 / 2) + 1, np.log(10) + 1], abs=1e-3
    )


def test_steps_of_the_surface_hold_as_many_prompts_each_and_the_last_has_no_end() -> None:
    texts = ["word " * count for count in range(1, 101)]
    prompts = prompts_of(texts)
    arrays = STUDENTS["linear"].fit(prompts, np.arange(100) // 50, 2)
    words = SURFACE.index("words")
    begin = BUCKETS + len(SURFACE) + 10 * words
    steps = features(arrays, prompts)[:, begin : begin + 10].toarray()
    assert steps.sum(axis=0) == pytest.approx([0.3 * 10] * 10)
    assert (np.diff(steps.argmax(axis=1)) >= 0).all()
    longer = features(arrays, prompts_of(["word " * 1000, ""]))[:, begin : begin + 10].toarray()
    assert longer.argmax(axis=1).tolist() == [9, 0]


@pytest.mark.parametrize("student", STUDENTS)
def test_a_level_without_labels_is_never_given(student: str) -> None:
    texts, labels = sums(90, levels=2)
    for true, counted in ((labels * 2, 3), (np.zeros_like(labels), 3)):
        arrays = STUDENTS[student].fit(prompts_of(texts), true, counted)
        assert 1 not in STUDENTS[student].probabilities(arrays, prompts_of(texts)).argmax(axis=1)


def test_stacked_parts_are_the_prompts_in_order() -> None:
    texts, _ = sums(9)
    whole = prompts_of(texts)
    parts = stacked([prompts_of(texts[:4]), prompts_of(texts[4:])])
    assert (parts.grams != whole.grams).nnz == 0
    assert (parts.surface == whole.surface).all()
    rows = np.array([5, 1])
    assert (whole[rows].surface == whole.surface[rows]).all()


def test_the_fasttext_student_is_what_fasttext_trains_on_the_same_lines(tmp_path: Path) -> None:
    import fasttext

    texts = ["Add 1_2, __label__9 and 3!", "Prove that √2 is irrational.", "Add 4", "Prove it."] * 5
    levels = np.array([0, 2, 0, 2] * 5)
    model = fasttext_student.train(texts, levels)
    lines = ["add 1 _ 2 , _ _ label _ _ 9 and 3 !", "prove that √ 2 is irrational .", "add 4", "prove it ."] * 5
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"__label__{level} {line}\n" for level, line in zip(levels, lines, strict=True)))
    reference = fasttext.train_supervised(str(path), **fasttext_student.SETTINGS)
    given = fasttext_student.probabilities(model, texts[:4], 3)
    for line, row in zip(lines, given, strict=False):
        expected = dict(zip(*reference.predict(line, k=-1, threshold=-1.0), strict=True))
        assert row == pytest.approx([expected["__label__0"], 0, expected["__label__2"]], abs=1e-4)


def test_proportional_odds_worked_by_hand_and_by_differences() -> None:
    assert ordinal.probabilities(np.array([0.0]), np.array([-np.log(3), np.log(3)])) == pytest.approx(
        np.array([[0.25, 0.5, 0.25]])
    )
    rng = np.random.default_rng(0)
    columns, levels = sparse.csr_matrix(rng.normal(size=(40, 3))), np.arange(40) % 4
    free = rng.normal(size=6)
    _, slope = ordinal._loss(free, columns, levels, 4, 1.0)
    step = 1e-6 * np.eye(6)
    by_differences = [
        (ordinal._loss(free + d, columns, levels, 4, 1.0)[0] - ordinal._loss(free - d, columns, levels, 4, 1.0)[0])
        / 2e-6
        for d in step
    ]
    assert slope == pytest.approx(by_differences, rel=1e-4)


def test_thresholds_without_columns_are_the_log_odds_of_the_shares() -> None:
    levels = np.array([0] * 2 + [1] * 4 + [2] * 4)
    slope, thresholds = ordinal.fit(sparse.csr_matrix(np.zeros((10, 1))), levels, 3, 1.0, 200)
    assert slope == pytest.approx([0])
    assert thresholds == pytest.approx([np.log(0.2 / 0.8), np.log(0.6 / 0.4)], abs=1e-3)
