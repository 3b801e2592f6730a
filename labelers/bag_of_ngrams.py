"""fastText's classifier (Joulin et al. 2016, Bag of Tricks for Efficient Text Classification), as arrays.

A prompt is the mean of its n-grams' vectors; a softmax layer on top gives the levels. Trained as fastText does: plain
stochastic gradient, one prompt at a time, a learning rate that falls linearly to zero. One thread and a seeded
generator, so that the same labels give the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sft_toolkit.packers.placement import compiled

if TYPE_CHECKING:
    from sft_toolkit.labelers.prompt_features import Matrix

Floats = npt.NDArray[np.float32]
Chances = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]

WIDTH = 16
EPOCHS = 50
RATE = 1.0


def train(grams: Matrix, levels: npt.NDArray[np.integer], count: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Fit vectors: float32[buckets, WIDTH] and output: float32[count, WIDTH].

    grams: counts [n, buckets]; levels: int[n], 0 … count - 1.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    vectors = generator.uniform(-1 / WIDTH, 1 / WIDTH, (grams.shape[1], WIDTH)).astype(np.float32)
    output = np.zeros((count, WIDTH), np.float32)
    shares = _shares(grams)
    steps = EPOCHS * len(levels)
    for epoch in range(EPOCHS):
        order = generator.permutation(len(levels))
        _pass(grams.indptr, grams.indices, shares, levels, order, vectors, output, epoch * len(levels), steps)
    return vectors, output


def probabilities(grams: Matrix, vectors: Floats, output: Floats) -> npt.NDArray[np.float64]:
    """P(level) of each prompt: float64[n, count]."""
    result = np.empty((grams.shape[0], len(output)))
    _predict(grams.indptr, grams.indices, _shares(grams), vectors, output, result)
    return result


def _shares(grams: Matrix) -> Floats:
    """Each n-gram's share of its prompt: float32[nnz]."""
    totals = np.maximum(np.asarray(grams.sum(axis=1)).ravel(), 1)
    return (grams.data / np.repeat(totals, np.diff(grams.indptr))).astype(np.float32)


@compiled
def _hidden(indices: Ints, shares: Floats, begin: int, end: int, vectors: Floats, hidden: Floats) -> None:
    hidden[:] = 0.0
    for place in range(begin, end):
        for column in range(len(hidden)):
            hidden[column] += shares[place] * vectors[indices[place], column]


@compiled
def _softmax(hidden: Floats, output: Floats, chances: Chances) -> None:
    for level in range(len(output)):
        chances[level] = 0.0
        for column in range(len(hidden)):
            chances[level] += output[level, column] * hidden[column]
    chances -= chances.max()
    np.exp(chances, chances)
    chances /= chances.sum()


@compiled
def _pass(
    indptr: Ints,
    indices: Ints,
    shares: Floats,
    levels: Ints,
    order: Ints,
    vectors: Floats,
    output: Floats,
    step: int,
    steps: int,
) -> None:
    """One epoch over the prompts in `order`; `step` of `steps` are done before it."""
    hidden, back = np.empty(vectors.shape[1], np.float32), np.empty(vectors.shape[1], np.float32)
    chances = np.empty(len(output), np.float64)
    for done in range(len(order)):
        row = order[done]
        rate = np.float32(RATE * (1.0 - (step + done) / steps))
        _hidden(indices, shares, indptr[row], indptr[row + 1], vectors, hidden)
        _softmax(hidden, output, chances)
        back[:] = 0.0
        for level in range(len(output)):
            pull = rate * np.float32((1.0 if level == levels[row] else 0.0) - chances[level])
            for column in range(len(hidden)):
                back[column] += pull * output[level, column]
                output[level, column] += pull * hidden[column]
        for place in range(indptr[row], indptr[row + 1]):
            for column in range(len(hidden)):
                vectors[indices[place], column] += shares[place] * back[column]


@compiled
def _predict(indptr: Ints, indices: Ints, shares: Floats, vectors: Floats, output: Floats, result: Chances) -> None:
    hidden = np.empty(vectors.shape[1], np.float32)
    for row in range(len(indptr) - 1):
        _hidden(indices, shares, indptr[row], indptr[row + 1], vectors, hidden)
        _softmax(hidden, output, result[row])
