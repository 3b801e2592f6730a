"""fastText's classifier (Joulin et al. 2016, Bag of Tricks for Efficient Text Classification), by fastText itself.

A prompt is the mean of its words' and word pairs' vectors; a softmax layer on top gives the levels. One thread and a
fixed seed, so that the same labels give the same bits.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sft_toolkit.labelers.prompt_features import shortened

Texts: TypeAlias = Sequence[str] | npt.NDArray[np.object_]

SETTINGS = {
    "dim": 16,
    "epoch": 50,
    "lr": 1.0,
    "wordNgrams": 2,
    "bucket": 1 << 16,
    "minCount": 1,
    "thread": 1,
    "seed": 0,
    "verbose": 0,
}
"""Arguments of fasttext.train_supervised."""

_LABEL = "__label__"
_TOKEN = re.compile(r"[^\W_]+|_|[^\w\s]")
"""Words and marks; an underscore is a mark, so that no text holds what fastText takes for a label."""


def train(texts: Texts, levels: npt.NDArray[np.integer]) -> npt.NDArray[np.uint8]:
    """Train on texts and their levels; the bytes of fastText's model file: uint8[size]."""
    import fasttext

    with tempfile.TemporaryDirectory() as folder:
        lines, model = Path(folder, "train.txt"), Path(folder, "model.bin")
        with lines.open("w", encoding="utf-8", errors="replace") as file:
            for text, level in zip(texts, levels.tolist(), strict=True):
                file.write(f"{_LABEL}{level} {_line(text)}\n")
        fasttext.train_supervised(str(lines), **SETTINGS).save_model(str(model))
        return np.frombuffer(model.read_bytes(), np.uint8)


def probabilities(model: npt.NDArray[np.uint8], texts: Texts, count: int) -> npt.NDArray[np.float64]:
    """P(level) of each text: float64[n, count]; a level that no text was trained on has 0."""
    classifier = _loaded(model.tobytes())
    result = np.zeros((len(texts), count))
    for row, text in enumerate(texts):
        labels, chances = classifier.predict(_line(text), k=-1, threshold=-1.0, on_unicode_error="replace")
        for label, chance in zip(labels, chances, strict=True):
            result[row, int(label.removeprefix(_LABEL))] = chance
    return result / result.sum(axis=1, keepdims=True)


def _line(text: str) -> str:
    return " ".join(_TOKEN.findall(shortened(text).lower()))


@lru_cache(maxsize=1)
def _loaded(model: bytes) -> Any:
    import fasttext

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.bin")
        path.write_bytes(model)
        return fasttext.load_model(str(path))
