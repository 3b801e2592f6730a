"""Effort labels: the report's worked numbers, an independent reference, and what must hold for any lengths."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.labelers.effort import CENTRES, LEVELS, WIDTHS, Edges, draw, fit, label, place, probabilities

lengths_of_tokens = st.integers(1, 300_000)
unit = st.floats(0, 1, exclude_max=True)


def array(*values):
    return np.array(values, float)


def histogram(*rows):
    """Rows of (dataset, difficulty, lengths), one count each."""
    flat = [(dataset, difficulty, length, 1) for dataset, difficulty, lengths in rows for length in lengths]
    return pl.DataFrame(flat, ["dataset", "difficulty", "length", "count"], orient="row")


@pytest.mark.parametrize(
    ("length", "u", "low", "medium", "high"),
    [(200, 0.3, 0.5, 0.5, 0), (400, 0.5, 0, 1, 0), (800, 0.7, 0, 0.5, 0.5), (1600, 0.9, 0, 0, 1)],
)
def test_the_reports_worked_numbers_between_edges_200_and_800(length, u, low, medium, high):
    places = place(array(length), array(200), array(800))
    assert places == pytest.approx([u], abs=1e-12)
    assert probabilities(places)[:, 0] == pytest.approx([low, medium, high], abs=0.005)


def test_an_edge_is_one_over_two_beta_from_both_its_centres():
    for edge, pair in ((0.3, (0, 1)), (0.7, (1, 2))):
        for level in pair:
            assert abs(edge - CENTRES[level]) / (0.15 * WIDTHS[level]) == pytest.approx(1 / 0.3)


def test_lengths_far_outside_the_edges_stay_in_the_unit_interval():
    assert place(array(1, 10**6), array(200, 200), array(800, 800)).tolist() == [0.0, 1.0]


def test_equal_edges_put_a_length_at_the_bottom_the_middle_or_the_top():
    assert place(array(99, 100, 101), array(100, 100, 100), array(100, 100, 100)).tolist() == [0.0, 0.5, 1.0]


def test_a_group_splits_about_30_40_30():
    rng = np.random.default_rng(0)
    lengths = np.rint(np.exp(rng.normal(7, 0.8, 200_000))).astype(int)
    _, edges = fit(histogram(("maths", "hard", lengths.tolist()))).find("maths", "hard")
    levels = label(lengths, np.full(200_000, edges.l30), np.full(200_000, edges.l70), rng.random(200_000))
    assert np.bincount(levels, minlength=4) / 200_000 == pytest.approx([0, 0.3, 0.4, 0.3], abs=0.005)


def test_no_reasoning_is_none_whatever_the_edges():
    levels = label(np.array([0, 400, 0]), array(200, 200, np.nan), array(800, 800, np.nan), array(0.5, 0.5, 0.5))
    assert [LEVELS[level] for level in levels] == ["none", "medium", "none"]


def test_a_negative_length_is_refused():
    with pytest.raises(ValueError, match="negative"):
        label(np.array([-1]), array(200), array(800), array(0.5))


def test_each_level_owns_its_share_of_the_uniforms():
    chances = np.tile(array([0.25], [0.5], [0.25]), 6)
    levels = draw(chances, array(0, 0.2499, 0.25, 0.7499, 0.75, 0.9999))
    assert [LEVELS[level] for level in levels] == ["low", "low", "medium", "medium", "high", "high"]


@given(st.lists(lengths_of_tokens, min_size=2, max_size=50), lengths_of_tokens, lengths_of_tokens)
def test_a_longer_trace_never_lies_lower(lengths, one, other):
    lengths = np.array(sorted(lengths))
    places = place(
        lengths, np.full(len(lengths), float(min(one, other))), np.full(len(lengths), float(max(one, other)))
    )
    assert (np.diff(places) >= 0).all()
    assert ((places >= 0) & (places <= 1)).all()


@given(st.lists(unit, min_size=1), st.floats(5e-324, 1e6))
def test_probabilities_sum_to_one_for_any_beta(places, beta):
    chances = probabilities(np.array(places), beta)
    assert np.isfinite(chances).all()
    assert (chances >= 0).all()
    assert chances.sum(axis=0) == pytest.approx(np.ones(len(places)))


def test_a_vanishing_beta_leaves_the_nearest_centre_alone():
    assert probabilities(array(0.0, 0.29, 0.31, 0.69, 0.71, 1.0), 1e-300).argmax(axis=0).tolist() == [0, 0, 1, 1, 2, 2]


@given(unit, unit)
def test_a_level_of_probability_zero_is_never_drawn(u, uniform):
    chances = probabilities(array(u))
    assert chances[draw(chances, array(uniform))[0] - 1, 0] > 0


@given(lengths_of_tokens, lengths_of_tokens, lengths_of_tokens, unit)
def test_labels_equal_those_of_the_formula_in_plain_python(length, one, other, uniform):
    l30, l70 = sorted((one, other))
    chances = _chances(length, l30, l70)
    borders = (chances[0], chances[0] + chances[1])
    if min(abs(Decimal(uniform) - border) for border in borders) < Decimal("1e-9"):
        return
    expected = "low" if uniform < borders[0] else "medium" if uniform < borders[1] else "high"
    assert LEVELS[label(np.array([length]), array(l30), array(l70), array(uniform))[0]] == expected


def _chances(length, l30, l70):
    """SPEC's formula for one length, in decimal arithmetic, where nothing underflows."""
    if l30 == l70:
        u = Decimal(0) if length < l30 else Decimal(1) if length > l30 else Decimal("0.5")
    else:
        slope = Decimal("0.4") / (Decimal(l70).ln() - Decimal(l30).ln())
        u = min(max(Decimal("0.3") + slope * (Decimal(length).ln() - Decimal(l30).ln()), Decimal(0)), Decimal(1))
    bumps = ((Decimal("0.15"), Decimal("0.3")), (Decimal("0.5"), Decimal("0.4")), (Decimal("0.85"), Decimal("0.3")))
    weights = [(-(((u - m) / (Decimal("0.15") * w)) ** 2) / 2).exp() for m, w in bumps]
    return [weight / sum(weights) for weight in weights]


@given(st.lists(st.integers(1, 60) | lengths_of_tokens, min_size=1, max_size=300))
def test_edges_are_numpys_linear_percentiles(lengths):
    edges = fit(histogram(("d", "easy", lengths))).levels["group"]["d", "easy"]
    assert edges.n == len(lengths)
    assert [edges.l30, edges.l70] == pytest.approx(np.percentile(lengths, [30, 70]), rel=1e-12)


@given(st.lists(lengths_of_tokens, min_size=1, max_size=100))
def test_edges_are_the_nearest_floats_to_the_exact_percentiles(lengths):
    edges = fit(histogram(("d", "easy", lengths))).levels["all"][()]
    ordered = [*sorted(lengths), max(lengths)]
    for percent, edge in ((30, edges.l30), (70, edges.l70)):
        rank = Fraction(percent * (len(lengths) - 1), 100)
        below, above = ordered[math.floor(rank)], ordered[math.floor(rank) + 1]
        assert edge == float(below + (above - below) * (rank - math.floor(rank)))


def test_counts_weigh_as_repeated_rows_do():
    counted = pl.DataFrame({"dataset": "d", "difficulty": "", "length": [300, 100, 200, 100], "count": [1, 30, 60, 10]})
    assert fit(counted) == fit(histogram(("d", "", [100] * 40 + [200] * 60 + [300])))


def test_a_group_of_equal_lengths_is_degenerate():
    _, edges = fit(histogram(("d", "easy", [7] * 150))).find("d", "easy")
    assert edges == Edges(150, 7.0, 7.0)
    assert edges.degenerate


def test_a_small_group_is_labelled_by_its_data_set_and_a_small_data_set_around_its_own_median():
    table = fit(
        histogram(
            ("big", "easy", [10] * 20),
            ("big", "hard", [20] * 19),
            ("small", "easy", [300] * 10),
            ("small", "odd", [400] * 9),
        )
    )
    found = {
        group: table.find(*group) for group in [("big", "easy"), ("big", "hard"), ("small", "easy"), ("small", "odd")]
    }
    assert [level for level, _ in found.values()] == ["group", "dataset", "median", "median"]
    assert [edges.n for _, edges in found.values()] == [20, 39, 19, 19]


def test_the_spread_around_a_median_is_worked_out_from_the_data_sets_that_are_not_small():
    """Around 100: 25, 50, 100, 200, 400, of which 30% lie below 58.7 (0.2 of the way, in logs, from 50 to 100)."""
    table = fit(histogram(("big", "", [25, 50, 100, 200, 400] * 5), ("small", "", [900, 1000, 9000])), min_group=5)
    level, edges = table.find("small", "")
    ranks = (0.3 * 24, 0.7 * 24)  # of 25 sorted values, five of each
    below, above = (25 * 2 ** (rank // 5) for rank in ranks)
    assert (below, above) == (50, 200)
    assert level == "median"
    assert edges == pytest.approx((3, 1000 * 50 / 100, 1000 * 200 / 100))


@given(st.lists(st.lists(lengths_of_tokens, min_size=1, max_size=30), min_size=1, max_size=6))
def test_edges_around_a_median_are_numpys_percentiles_of_log_lengths(sets):
    table = fit(histogram(*((f"d{number}", "", lengths) for number, lengths in enumerate(sets))))
    pool = [lengths for lengths in sets if len(lengths) >= 20] or sets
    spread = np.concatenate([np.log(lengths) - np.log(np.median(lengths)) for lengths in pool])
    for number, lengths in enumerate(sets):
        level, edges = table.find(f"d{number}", "")
        assert level == ("median" if len(lengths) < 20 else "group")
        if level == "median":
            expected = np.median(lengths) * np.exp(np.percentile(spread, [30, 70]))
            assert edges[1:] == pytest.approx(np.maximum(expected, 1))


def test_a_group_that_the_fit_never_saw_is_labelled_by_its_data_set_or_by_all():
    table = fit(histogram(("big", "easy", [10] * 100), ("small", "easy", [30])))
    groups = [("big", "new"), ("small", "new"), ("new", "easy"), ("new", "new")]
    assert [table.find(*group)[0] for group in groups] == ["dataset", "median", "all", "all"]


def test_lengths_of_other_data_sets_never_say_how_long_a_small_one_is():
    """Two large data sets of short traces, and five traces of about 90,000 tokens: each level is among its labels."""
    rng = np.random.default_rng(1)
    short = [np.rint(np.exp(rng.normal(mean, 0.8, 5_000))).astype(int) + 1 for mean in (5, 6)]
    traces = [40_000, 70_000, 90_000, 130_000, 200_000]
    table = fit(histogram(*((f"short{n}", "", lengths) for n, lengths in enumerate(short)), ("long", "", traces)))
    assert expected_split(table, "long", "", traces) == pytest.approx([0.2, 0.6, 0.2], abs=0.02)


def test_ninety_long_traces_beside_two_large_data_sets_get_all_three_levels():
    rng = np.random.default_rng(2)
    large = [np.rint(np.exp(rng.normal(mean, 0.8, 5_000))).astype(int) + 1 for mean in (5, 6)]
    traces = np.rint(np.exp(rng.normal(11.4, 0.7, 90))).astype(int)
    table = fit(histogram(*((f"d{n}", "", lengths) for n, lengths in enumerate(large)), ("long", "", traces)))
    assert table.find("long", "")[0] == "group"
    assert expected_split(table, "long", "", traces) == pytest.approx([0.3, 0.4, 0.3], abs=0.02)


@pytest.mark.parametrize(("n", "off"), [(20, 0.055), (50, 0.04), (1_000, 0.011)])
@pytest.mark.parametrize("shape", ["normal", "uniform", "exponential"])
def test_a_group_of_20_or_more_splits_30_40_30_in_expectation_whatever_its_spread(shape, n, off):
    rng = np.random.default_rng(n)
    splits = []
    for spread in np.linspace(0.1, 2.5, 50):
        logs = {
            "normal": rng.normal(9, spread, n),
            "uniform": rng.uniform(9 - spread, 9 + spread, n),
            "exponential": 5 + rng.exponential(spread, n),
        }[shape]
        lengths = np.rint(1_000 * np.exp(logs)).astype(int)
        table = fit(histogram(("d", "easy", lengths), ("other", "easy", [5] * 1_000)))
        splits.append(expected_split(table, "d", "easy", lengths))
    assert np.abs(np.array(splits) - [0.3, 0.4, 0.3]).max() < off
    assert np.mean(splits, axis=0) == pytest.approx([0.3, 0.4, 0.3], abs=0.011)


def expected_split(table, dataset, difficulty, lengths):
    """Shares of low, medium and high over all draws."""
    _, edges = table.find(dataset, difficulty)
    lengths = np.asarray(lengths)
    places = place(lengths, np.full(len(lengths), edges.l30), np.full(len(lengths), edges.l70))
    return probabilities(places).mean(axis=1)


def test_a_fit_of_one_data_set_with_two_exchanges_labels_by_their_own_spread():
    level, edges = fit(histogram(("d", "easy", [10, 20]))).find("d", "easy")
    assert level == "median"
    assert edges.l30 < 15 < edges.l70


def test_without_any_reasoning_there_are_no_edges_to_find():
    with pytest.raises(LookupError, match="no exchange with reasoning"):
        fit(histogram().cast({"length": pl.Int64, "count": pl.Int64})).find("d", "easy")
