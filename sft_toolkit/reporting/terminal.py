"""A view as lines for a terminal or a pipe: loss in colour, or in brackets ⟦…⟧ where there is no colour."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from sft_toolkit.reporting.view import Piece, Section, View
from sft_toolkit.visible import one_line, visible

OPEN, CLOSE = "⟦", "⟧"
_BETWEEN_TOKENS = "│"
_LINE_END = "↵"
_NARROWEST = 20
_STANDINGS = {"trained": "bold green", "masked": "bold yellow", "context": "bold"}


class Fragment(NamedTuple):
    """Text of one line, and its rich style."""

    text: str
    style: str = ""


Line = list[Fragment]


def view_lines(view: View, colour: bool, width: int | None = None) -> Iterator[Line]:
    """The head, then each section under a rule, which fills `width` columns where one is given."""
    yield from _head(view, colour, width)
    for section in view.sections:
        yield _rule(section, width)
        yield from _body(section, view.tokens_apart, colour)


def _head(view: View, colour: bool, width: int | None) -> Iterator[Line]:
    yield [Fragment(one_line(view.title), "bold")]
    broad = max((len(name) for name, _ in view.facts), default=0)
    for name, value in view.facts:
        for label, part in zip_longest([name], _wrapped(one_line(value), broad + 4, width), fillvalue=""):
            yield [Fragment(f"  {label:<{broad}}  ", "dim"), Fragment(part)]
    for warning in view.warnings:
        yield [Fragment(f"  warning: {warning}", "yellow")]
    yield _legend(view, colour)
    yield []


def _wrapped(text: str, indent: int, width: int | None) -> list[str]:
    return [text] if width is None else textwrap.wrap(text, max(width - indent, _NARROWEST))


def _legend(view: View, colour: bool) -> Line:
    sample = [Fragment("green", "green")] if colour else [Fragment(f"{OPEN}…{CLOSE}")]
    apart = f"; {_BETWEEN_TOKENS} stands between tokens, {_LINE_END} is a line break" if view.tokens_apart else ""
    return [Fragment("  "), *sample, Fragment(f" carries loss{apart}", "dim")]


def _rule(section: Section, width: int | None) -> Line:
    title = f"── {one_line(section.title)}"
    remarks = "".join(f" · {remark}" for remark in section.remarks) + " "
    fill = "─" * max((width or 0) - len(title) - len(remarks), 0)
    return [Fragment(title, _STANDINGS[section.standing]), Fragment((remarks + fill).rstrip(), _remark_style(section))]


def _remark_style(section: Section) -> str:
    return "yellow" if section.standing == "masked" else "dim"


def _body(section: Section, tokens_apart: bool, colour: bool) -> Iterator[Line]:
    line: Line = []
    inside = False
    for number, piece in enumerate(section.pieces):
        if not colour and piece.trained != inside:
            inside = piece.trained
            line.append(Fragment(OPEN if inside else CLOSE))
        elif tokens_apart and number:
            line.append(Fragment(_BETWEEN_TOKENS, "dim"))
        first, *others = visible(piece.text).split("\n")
        line += _spoken(first, piece)
        for text in others:
            line += [Fragment(_LINE_END, "dim")] if tokens_apart or (colour and piece.trained) else []
            yield line
            line = _spoken(text, piece)
    if inside:
        line.append(Fragment(CLOSE))
    if line:
        yield line


def _spoken(text: str, piece: Piece) -> Line:
    if not text:
        return []
    if piece.trained:
        return [Fragment(text, "bold green" if piece.annotation else "green")]
    return [Fragment(text, "dim" if piece.annotation else "")]
