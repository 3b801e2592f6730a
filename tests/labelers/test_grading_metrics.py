"""Agreement on ordered levels: numbers worked by hand, and scikit-learn's kappa."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from sft_toolkit.labelers.grading_metrics import agreement, calibration_error, fitted_temperature, tempered

GRADES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60)


def test_a_table_worked_by_hand() -> None:
    found = agreement(np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 0, 1, 0, 2]), 3)
    assert found.confusion.tolist() == [[2, 0, 0], [1, 1, 0], [1, 0, 1]]
    assert (found.exact, found.within_one, found.majority) == (4 / 6, 5 / 6, 2 / 6)
    # Squared distances: observed 1 + 4; by chance, margins 2, 2, 2 and 4, 1, 1: (2 + 8 + 8 + 2 + 32 + 2) / 6 = 9.
    assert found.kappa == pytest.approx(1 - 5 / 9)


@given(GRADES)
def test_kappa_and_confusion_are_those_of_scikit_learn(grades: list[tuple[int, int]]) -> None:
    true, given_ = (np.array(column) for column in zip(*grades, strict=True))
    found = agreement(true, given_, 4)
    assert (found.confusion == confusion_matrix(true, given_, labels=range(4))).all()
    assert found.exact == (true == given_).mean()
    assert found.within_one == (abs(true - given_) <= 1).mean()
    if len(set(true) | set(given_)) > 1:
        assert found.kappa == pytest.approx(cohen_kappa_score(true, given_, weights="quadratic", labels=range(4)))
    else:
        assert math.isnan(found.kappa)


def test_the_majority_baseline_is_the_share_of_the_commonest_label() -> None:
    assert agreement(np.array([1, 1, 1, 0]), np.array([0, 0, 0, 0]), 2).majority == 0.75


def test_nothing_to_compare_is_an_error() -> None:
    with pytest.raises(ValueError, match="no prompts"):
        agreement(np.array([], int), np.array([], int), 3)


def test_the_calibration_error_worked_by_hand() -> None:
    chances = np.array([[0.9, 0.1], [0.95, 0.05], [0.4, 0.6], [0.35, 0.65]])
    # One bin is right in 1 of 2 at .925 on average, the other in 2 of 2 at .625.
    assert calibration_error(np.array([0, 1, 1, 1]), chances) == pytest.approx((2 * 0.425 + 2 * 0.375) / 4)


def test_the_temperature_makes_confidence_what_the_share_is_that_is_right() -> None:
    chances = np.tile([0.9, 0.1], (10, 1))
    true = np.array([0] * 7 + [1] * 3)
    temperature = fitted_temperature(true, chances)
    assert temperature == pytest.approx(np.log(9) / np.log(7 / 3), rel=1e-3)
    assert tempered(chances, temperature)[0] == pytest.approx([0.7, 0.3], abs=1e-3)
    assert tempered(np.array([[1.0, 0.0]]), 2.0).tolist() == [[1.0, 0.0]]
