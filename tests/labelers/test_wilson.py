"""Wilson's interval against published values and its defining equation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.labelers.wilson import Z_95, wilson_interval


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0000, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_intervals_of_newcombe_1998_table_1_are_met(successes, trials, low, high):
    found = wilson_interval(successes, trials)
    assert found == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_both_bounds_lie_z_standard_errors_from_the_rate(counts):
    successes, trials = counts
    rate = successes / trials
    for bound in wilson_interval(successes, trials):
        assert (rate - bound) ** 2 == pytest.approx(Z_95**2 * bound * (1 - bound) / trials, abs=1e-12)


@pytest.mark.parametrize("counts", [(0, 0), (3, 2), (-1, 2)])
def test_what_is_no_proportion_is_refused(counts):
    with pytest.raises(ValueError, match="no proportion"):
        wilson_interval(*counts)
