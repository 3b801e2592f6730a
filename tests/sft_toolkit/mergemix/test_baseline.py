"""Mixtures against the one set by hand: how much better, how many, and what of that is noise."""

from __future__ import annotations

import pytest

from sft_toolkit.errors import UsageError
from sft_toolkit.mergemix.baseline import compare_with_baseline
from sft_toolkit.mergemix.verdict import Noise

NOISES = {"trained": Noise(0.5), "merged": None}


def test_six_of_seven_is_the_reports_count_and_its_interval_is_wilsons() -> None:
    """Scores of 1, 2, …, 7 and 0 against a baseline of 0.5; of 6/7 Wilson's interval is .4869 to .9743."""
    trained = {"hand": [0.5], **{f"mix-{score}": [float(score)] for score in (7, 1, 3, 2, 5, 4)}, "mix-0": [0.0]}
    (found,) = compare_with_baseline("hand", {"trained": trained}, NOISES, lower=False)
    assert (found.better, len(found.others)) == (6, 7)
    assert found.rate == pytest.approx((0.4869, 0.9743), abs=1e-4)
    assert [other.id for other in found.others] == ["mix-7", "mix-5", "mix-4", "mix-3", "mix-2", "mix-1", "mix-0"]


def test_a_gain_has_the_interval_of_a_difference_of_means() -> None:
    """Noise .5, four runs against one: 1.96 * .5 * sqrt(1/4 + 1) = 1.0957."""
    kinds = {"trained": {"hand": [2.0], "better": [3.0, 3.2, 3.4, 3.6], "worse": [1.0]}}
    (found,) = compare_with_baseline("hand", kinds, NOISES, lower=False)
    better, worse = found.others
    assert better.gain == pytest.approx(1.3)
    assert better.interval == pytest.approx((1.3 - 1.0957, 1.3 + 1.0957), abs=1e-4)
    assert better.beyond_noise and not worse.beyond_noise
    assert worse.gain == -1.0


def test_noise_that_was_estimated_from_one_repeat_is_hardly_known() -> None:
    """One degree of freedom: t is 12.7062, so 12.7062 * .5 * sqrt(1 + 1)."""
    kinds = {"trained": {"hand": [2.0], "better": [3.0]}}
    (found,) = compare_with_baseline("hand", kinds, {"trained": Noise(0.5, 1), "merged": None}, lower=False)
    assert found.others[0].interval == pytest.approx((1 - 8.9846, 1 + 8.9846), abs=1e-3)
    assert not found.others[0].beyond_noise


def test_of_losses_the_lower_one_is_better_and_without_noise_there_is_no_interval() -> None:
    (found,) = compare_with_baseline("hand", {"merged": {"hand": [2.0], "a": [1.5], "b": [2.5]}}, NOISES, lower=True)
    assert [(other.id, other.gain, other.interval, other.beyond_noise) for other in found.others] == [
        ("a", 0.5, None, None),
        ("b", -0.5, None, None),
    ]
    assert found.to_json()["better"] == 1


def test_each_kind_of_score_that_the_baseline_has_is_compared() -> None:
    kinds = {"trained": {"hand": [1.0]}, "merged": {"hand": [1.0], "a": [2.0]}}
    assert [found.kind for found in compare_with_baseline("hand", kinds, NOISES, lower=False)] == ["merged"]
    with pytest.raises(UsageError, match="`baseline` b: has no score") as fault:
        compare_with_baseline("b", kinds, NOISES, lower=False)
    assert fault.value.hint == "scored are a, hand"
