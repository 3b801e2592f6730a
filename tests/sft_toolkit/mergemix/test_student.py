"""Quantiles of Student's t."""

from __future__ import annotations

import pytest
from scipy.stats import t

from sft_toolkit.mergemix.student import student_95


@pytest.mark.parametrize("freedom", [*range(1, 40), 100, 10_000])
def test_quantiles_are_those_of_scipy(freedom: int) -> None:
    assert student_95(freedom) == pytest.approx(t.ppf(0.975, freedom), rel=3e-5)


def test_noise_that_is_known_takes_the_normal_quantile() -> None:
    assert student_95(None) == pytest.approx(1.95996, abs=1e-4)
