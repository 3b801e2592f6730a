"""Students that label how difficult a prompt is, fitted on a teacher's labels (SPEC section 5).

`linear` is a multinomial logistic regression on tf-idf n-grams and the prompt's surface, the latter both as it is and
in steps: slopes carry over to data sets that were not seen, steps fit those that were. `ordinal` fits the same columns
to levels in order. `fasttext` is fastText's classifier on words and word pairs. All are stored as arrays, without
pickle; fastText's as the bytes of its model file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from sft_toolkit.labelers import fasttext_student, ordinal
from sft_toolkit.labelers.prompt_features import Matrix, ngrams, surface

Arrays = Mapping[str, npt.NDArray[Any]]
Chances = npt.NDArray[np.float64]
Levels = npt.NDArray[np.integer]

VERSION = 3
"""Of the features: arrays of one version mean nothing to another."""

_STRENGTH = 1.0
_STEPS = 10
"""Steps of each surface column, each with as many of the fitted prompts."""
_STEP_WEIGHT = 0.3
_FARTHEST = 4.0
_ITERATIONS = 200
_NEVER = -1e9
"""Bias of a level that no prompt has."""


@dataclass(frozen=True)
class Prompts:
    """What students see of n prompts. texts: str[n]; grams: counts [n, BUCKETS]; surface: float64[n, columns]."""

    texts: npt.NDArray[np.object_]
    grams: Matrix
    surface: npt.NDArray[np.float64]

    def __getitem__(self, rows: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> Prompts:
        return Prompts(self.texts[rows], self.grams[rows], self.surface[rows])


@dataclass(frozen=True)
class Kind:
    """A kind of student: how arrays come of prompts and their levels (int[n], 0 … count - 1), and labels of arrays."""

    fit: Callable[[Prompts, Levels, int], Arrays]
    probabilities: Callable[[Arrays, Prompts], Chances]


def prompts_of(texts: Sequence[str]) -> Prompts:
    return Prompts(np.array([*texts, ""], object)[:-1], ngrams(texts), surface(texts))


def stacked(parts: Sequence[Prompts]) -> Prompts:
    """The prompts of all parts, in order."""
    return Prompts(
        np.concatenate([part.texts for part in parts]),
        sparse.vstack([part.grams for part in parts]).tocsr(),
        np.concatenate([part.surface for part in parts]),
    )


def _fit_linear(prompts: Prompts, levels: Levels, count: int) -> Arrays:
    """Arrays of the linear student.

    idf: float32[BUCKETS]; centre, spread: float64[columns]; edges: float64[columns, _STEPS - 1], of the steps;
    weights: float32[count, BUCKETS + columns + columns * _STEPS + 1], the last one the bias.
    """
    arrays = _scales(prompts)
    columns, found = features(arrays, prompts), np.unique(levels)
    weights = np.zeros((count, columns.shape[1] + 1), np.float32)
    weights[np.setdiff1d(np.arange(count), found), -1] = _NEVER
    if len(found) > 1:
        model = LogisticRegression(C=_STRENGTH, max_iter=_ITERATIONS, tol=1e-3).fit(columns, levels)
        fitted = np.column_stack([model.coef_, model.intercept_])
        weights[found[-len(fitted) :]] = fitted  # of two levels, the upper one alone has a row
    return {**arrays, "weights": weights}


def _scales(prompts: Prompts) -> dict[str, npt.NDArray[np.floating]]:
    """What `features` needs to know of the fitted prompts; `_fit_linear` says what the arrays are."""
    n = prompts.grams.shape[0]
    seen_in = np.bincount(prompts.grams.indices, minlength=prompts.grams.shape[1])
    return {
        "idf": (np.log((1 + n) / (1 + seen_in)) + 1).astype(np.float32),
        "centre": prompts.surface.mean(axis=0),
        "spread": prompts.surface.std(axis=0) + 1e-9,
        "edges": np.quantile(prompts.surface, np.arange(1, _STEPS) / _STEPS, axis=0).T.copy(),
    }


def _linear_probabilities(arrays: Arrays, prompts: Prompts) -> Chances:
    return _softmax(features(arrays, prompts) @ arrays["weights"][:, :-1].T + arrays["weights"][:, -1])


def features(arrays: Arrays, prompts: Prompts) -> Matrix:
    """tf-idf of the n-grams, each row of length 1; beside it the standardised surface, and the step it is on.

    All of it sparse: a row's product then depends on that row alone, not on how many others there are.
    """
    grams = prompts.grams.astype(np.float64)
    grams.data = (1 + np.log(grams.data)) * arrays["idf"][grams.indices]
    norms = np.sqrt(np.asarray(grams.multiply(grams).sum(axis=1)).ravel())
    grams.data /= np.repeat(np.maximum(norms, 1e-9), np.diff(grams.indptr))
    standard = (prompts.surface - arrays["centre"]) / arrays["spread"]
    bounded = np.clip(standard, -_FARTHEST, _FARTHEST)
    return sparse.hstack([grams, sparse.csr_matrix(bounded), _steps(prompts.surface, arrays["edges"])]).tocsr()


def _steps(surface: npt.NDArray[np.float64], edges: npt.NDArray[np.floating]) -> Matrix:
    """_STEP_WEIGHT at the step that each column is on: sparse [n, columns * _STEPS]."""
    n, columns = surface.shape
    step = (surface[:, :, None] >= edges).sum(axis=2)
    places = (step + np.arange(columns) * _STEPS).ravel()
    weights, begins = np.full(len(places), _STEP_WEIGHT), np.arange(0, len(places) + 1, columns)
    return sparse.csr_matrix((weights, places, begins), shape=(n, columns * _STEPS))


def _softmax(scores: Chances) -> Chances:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _fit_ordinal(prompts: Prompts, levels: Levels, count: int) -> Arrays:
    """Arrays of the ordinal student: those of `_scales`; slope: float64[columns of features]; thresholds; found: the
    levels that occur, of `count`."""
    arrays, (found, places) = _scales(prompts), np.unique(levels, return_inverse=True)
    columns = features(arrays, prompts)
    slope, thresholds = np.zeros(columns.shape[1]), np.empty(0)
    if len(found) > 1:
        slope, thresholds = ordinal.fit(columns, places, len(found), _STRENGTH, _ITERATIONS)
    occurs = np.isin(np.arange(count), found).astype(np.float64)
    return {**arrays, "slope": slope, "thresholds": thresholds, "occurs": occurs}


def _ordinal_probabilities(arrays: Arrays, prompts: Prompts) -> Chances:
    occurs = arrays["occurs"] > 0
    chances = np.zeros((prompts.grams.shape[0], len(occurs)))
    chances[:, occurs] = ordinal.probabilities(features(arrays, prompts) @ arrays["slope"], arrays["thresholds"])
    return chances


def _fit_fasttext(prompts: Prompts, levels: Levels, count: int) -> Arrays:
    return {"model": fasttext_student.train(prompts.texts, levels), "count": np.array([count])}


def _fasttext_probabilities(arrays: Arrays, prompts: Prompts) -> Chances:
    return fasttext_student.probabilities(arrays["model"], prompts.texts, int(arrays["count"][0]))


STUDENTS = {
    "linear": Kind(_fit_linear, _linear_probabilities),
    "ordinal": Kind(_fit_ordinal, _ordinal_probabilities),
    "fasttext": Kind(_fit_fasttext, _fasttext_probabilities),
}
