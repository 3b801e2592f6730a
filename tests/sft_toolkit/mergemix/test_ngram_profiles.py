"""Data sets by likeness of words."""

from __future__ import annotations

import numpy as np
import pytest

from sft_toolkit.errors import UsageError
from sft_toolkit.mergemix.ngram_profiles import cluster_datasets, count_ngrams, similarities

MATH = "the sum of the angles and the area of the triangle"
CODE = "write a function that returns the sorted list of strings"


def test_words_and_their_pairs_are_counted_in_lower_case() -> None:
    """a, b, c, "a b", "b c" once or twice: seven occurrences in five places."""
    counts = count_ngrams(["A b", "a B c"])
    assert counts.sum() == 8 and np.count_nonzero(counts) == 5
    assert np.array_equal(counts, count_ngrams(["a b"]) + count_ngrams(["a b c"]))


def test_an_empty_data_set_is_like_no_other() -> None:
    cosines = similarities([count_ngrams([]), count_ngrams([MATH]), count_ngrams([CODE])])
    assert cosines[0].tolist() == [0, 0, 0]
    assert cosines[1, 1] == pytest.approx(1)


def test_data_sets_that_speak_alike_come_together() -> None:
    counts = {
        "algebra": count_ngrams([MATH + " equation"]),
        "geometry": count_ngrams([MATH + " circle"]),
        "python": count_ngrams([CODE + " python"]),
        "rust": count_ngrams([CODE + " rust"]),
        "recipes": count_ngrams(["whisk eggs with flour, then bake"]),
    }
    found = cluster_datasets(counts, 3)
    assert [cluster.datasets for cluster in found] == [("algebra", "geometry"), ("python", "rust"), ("recipes",)]
    assert found[2].cohesion == 1 and 0.5 < found[0].cohesion < 1


@pytest.mark.parametrize("number", [0, 3])
def test_more_clusters_than_data_sets_are_refused(number: int) -> None:
    with pytest.raises(UsageError, match="2 data sets do not make"):
        cluster_datasets({"a": count_ngrams(["x"]), "b": count_ngrams(["y"])}, number)
