"""What `inspect` shows, whatever it is of and wherever it goes: a head, and sections of text with their loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Standing = Literal["trained", "masked", "context"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of consecutive tokens that are alike, or of a single token.

    `trained`: it carries loss. `annotation`: a control token, or a label of ours, rather than what somebody said.
    """

    text: str
    trained: bool = False
    annotation: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """A message or a document. A `masked` one was produced by the model and taken out of the loss."""

    title: str
    remarks: list[str]
    standing: Standing
    pieces: list[Piece]


@dataclass(frozen=True, slots=True)
class View:
    """`facts` are names and values for the head; `tokens_apart` says that each piece is one token."""

    title: str
    facts: list[tuple[str, str]]
    sections: list[Section]
    warnings: list[str] = field(default_factory=list)
    tokens_apart: bool = False


def token_pieces(
    text_of: Callable[[int, int], str],
    begin: int,
    end: int,
    loss_mask: NDArray[np.bool_],
    control: NDArray[np.bool_],
    apart: bool,
) -> list[Piece]:
    """Pieces of the tokens [begin, end), one a token where they are wanted `apart`.

    `text_of(first, after)` is the text of those tokens; it is asked in order. Masks are bool[tokens].
    """
    alike = 2 * loss_mask[begin:end] + control[begin:end]
    breaks = np.ones(max(len(alike) - 1, 0), np.bool_) if apart else np.diff(alike) != 0
    bounds = [begin, *(np.flatnonzero(breaks) + begin + 1).tolist(), end]
    return [
        Piece(text_of(first, after), bool(loss_mask[first]), bool(control[first])) for first, after in pairwise(bounds)
    ]


def token_facts(lengths: list[int], loss_tokens: int) -> list[tuple[str, str]]:
    """Totals of documents of these lengths (tokens); cost is the sum of their squares."""
    tokens = sum(lengths)
    share = loss_tokens / tokens if tokens else 0.0
    documents = [("documents", f"{len(lengths):,}")] if len(lengths) > 1 else []
    return [
        ("tokens", f"{tokens:,}"),
        ("loss tokens", f"{loss_tokens:,} ({share:.1%})"),
        *documents,
        ("cost", f"{sum(length * length for length in lengths):,}"),
    ]


def token_remark(tokens: int, loss_tokens: int) -> str:
    return f"{tokens:,} tokens" + (f", {loss_tokens:,} with loss" if loss_tokens else "")
