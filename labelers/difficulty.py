"""Students that label how difficult a prompt is, fitted on a teacher's labels (SPEC section 5).

`linear` is a multinomial logistic regression on tf-idf n-grams and the prompt's surface; `fasttext` is fastText's
classifier on the n-grams alone. Both are arrays and nothing else, so that they are stored without pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from sft_toolkit.labelers import bag_of_ngrams
from sft_toolkit.labelers.prompt_features import Matrix, ngrams, surface

Arrays = Mapping[str, npt.NDArray[np.floating]]
Chances = npt.NDArray[np.float64]
Levels = npt.NDArray[np.integer]

VERSION = 1
"""Of the features: arrays of one version mean nothing to another."""

_STRENGTH = 1.0
_SURFACE_WEIGHT = 0.3
_FARTHEST = 4.0
_ITERATIONS = 200
_NEVER = -1e9
"""Bias of a level that no prompt has."""


@dataclass(frozen=True)
class Prompts:
    """What students see of n prompts. grams: counts [n, BUCKETS]; surface: float64[n, columns]."""

    grams: Matrix
    surface: npt.NDArray[np.float64]

    def __getitem__(self, rows: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> Prompts:
        return Prompts(self.grams[rows], self.surface[rows])


@dataclass(frozen=True)
class Kind:
    """A kind of student: how arrays come of prompts and their levels (int[n], 0 … count - 1), and labels of arrays."""

    fit: Callable[[Prompts, Levels, int], Arrays]
    probabilities: Callable[[Arrays, Prompts], Chances]


def prompts_of(texts: Sequence[str]) -> Prompts:
    return Prompts(ngrams(texts), surface(texts))


def stacked(parts: Sequence[Prompts]) -> Prompts:
    """The prompts of all parts, in order."""
    return Prompts(sparse.vstack([part.grams for part in parts]).tocsr(), np.concatenate([p.surface for p in parts]))


def _fit_linear(prompts: Prompts, levels: Levels, count: int) -> Arrays:
    """idf: float32[BUCKETS]; centre, spread: float64[columns]; weights: float32[count, BUCKETS + columns + 1]."""
    n = prompts.grams.shape[0]
    seen_in = np.bincount(prompts.grams.indices, minlength=prompts.grams.shape[1])
    arrays = {
        "idf": (np.log((1 + n) / (1 + seen_in)) + 1).astype(np.float32),
        "centre": prompts.surface.mean(axis=0),
        "spread": prompts.surface.std(axis=0) + 1e-9,
    }
    columns, found = tfidf_and_surface(arrays, prompts), np.unique(levels)
    weights = np.zeros((count, columns.shape[1] + 1), np.float32)
    weights[np.setdiff1d(np.arange(count), found), -1] = _NEVER
    if len(found) > 1:
        model = LogisticRegression(C=_STRENGTH, max_iter=_ITERATIONS, tol=1e-3).fit(columns, levels)
        fitted = np.column_stack([model.coef_, model.intercept_])
        weights[found[-len(fitted) :]] = fitted  # of two levels, the upper one alone has a row
    return {**arrays, "weights": weights}


def _linear_probabilities(arrays: Arrays, prompts: Prompts) -> Chances:
    return _softmax(tfidf_and_surface(arrays, prompts) @ arrays["weights"][:, :-1].T + arrays["weights"][:, -1])


def tfidf_and_surface(arrays: Arrays, prompts: Prompts) -> Matrix:
    """tf-idf of the n-grams, each row of length 1, and the standardised surface beside it.

    All of it sparse: a row's product then hangs on that row alone, not on how many others there are.
    """
    grams = prompts.grams.astype(np.float64)
    grams.data = (1 + np.log(grams.data)) * arrays["idf"][grams.indices]
    norms = np.sqrt(np.asarray(grams.multiply(grams).sum(axis=1)).ravel())
    grams.data /= np.repeat(np.maximum(norms, 1e-9), np.diff(grams.indptr))
    standard = (prompts.surface - arrays["centre"]) / arrays["spread"]
    bounded = np.clip(standard, -_FARTHEST, _FARTHEST) * _SURFACE_WEIGHT
    return sparse.hstack([grams, sparse.csr_matrix(bounded)]).tocsr()


def _softmax(scores: Chances) -> Chances:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _fit_fasttext(prompts: Prompts, levels: Levels, count: int) -> Arrays:
    vectors, output = bag_of_ngrams.train(prompts.grams, levels, count)
    return {"vectors": vectors, "output": output}


def _fasttext_probabilities(arrays: Arrays, prompts: Prompts) -> Chances:
    return bag_of_ngrams.probabilities(prompts.grams, arrays["vectors"], arrays["output"])


STUDENTS = {
    "linear": Kind(_fit_linear, _linear_probabilities),
    "fasttext": Kind(_fit_fasttext, _fasttext_probabilities),
}
