"""Pieces of rendered text as findings quote them."""

from __future__ import annotations

from collections.abc import Iterable

from sft_toolkit.chat import Rendered, Span


def written(trial: Rendered, span: Span) -> str:
    return "".join(trial.text[begin:end] for begin, end in span.pieces).strip()


def last_token(text: str, control: Iterable[str]) -> str:
    """The control token that a text ends with, else its last word."""
    tokens = (token for token in sorted(control, key=len, reverse=True) if text.endswith(token))
    return next(tokens, text.split()[-1] if text else "nothing")


def shown(text: str) -> str:
    return text.replace("\n", "↵")


def listed(texts: Iterable[str]) -> str:
    return " or ".join(map(shown, texts))


def tokens_of(count: int) -> str:
    return f"{count} token{'s' if count > 1 else ''}"
