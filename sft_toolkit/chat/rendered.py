"""What rendering gives: text, token ids, loss mask, and where each assistant message lies in them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Span:
    """One assistant message in the text and among the tokens.

    Characters: the message's own text begins at `begin`, its header (what a generation prompt gives) ends at
    `header_end`, the model produces `pieces`, between which other messages may stand. Tokens: `tokens` are the ranges
    that belong to the pieces. `stop` is the text of the control token that ends the turn, "" where there is none.
    `trained` says whether it carries loss, `reasoning` whether the template wrote its reasoning (None: it has none).
    """

    message: int
    begin: int
    header_end: int
    pieces: tuple[Range, ...]
    tokens: tuple[Range, ...]
    stop: str
    trained: bool
    reasoning: bool | None

    @property
    def end(self) -> int:
        return self.pieces[-1][1] if self.pieces else self.header_end

    @property
    def token_end(self) -> int:
        return self.tokens[-1][1] if self.tokens else 0


@dataclass(frozen=True, slots=True)
class Rendered:
    """`text` is what the template renders; `loss_mask[i]` is true where `input_ids[i]` is a training target.

    `input_ids` is int32[n], `loss_mask` bool[n]. A BOS that only the tokenizer adds, and an EOS that the template
    leaves out, are in `input_ids` alone. `inert` are characters whose control tokens were read as plain text.
    `notes` counts what is worth knowing.
    """

    text: str
    input_ids: np.ndarray
    loss_mask: np.ndarray
    spans: list[Span]
    notes: Counter[str]
    inert: list[Range]

    @property
    def loss_tokens(self) -> int:
        return int(np.count_nonzero(self.loss_mask))
