"""The commands, their modules and their line of help: read without importing any of them."""

from __future__ import annotations

from typing import NamedTuple

_RECORDS, _SEQUENCES, _MODELS = "Records", "Sequences", "Models"


class Entry(NamedTuple):
    """`sft_toolkit.cli.<module>:<attribute>`, a function or a Typer of subcommands."""

    module: str
    attribute: str
    help: str
    panel: str


COMMANDS = {
    "convert": Entry("convert", "convert", "Read any known format, write the toolkit's records.", _RECORDS),
    "mask": Entry("mask", "mask", "Take wrong tool calls out of the loss; they stay in the context.", _RECORDS),
    "effort": Entry("effort", "app", "Draw soft effort labels from reasoning lengths.", _RECORDS),
    "render": Entry("render", "render", "Render conversations to tokens with an exact loss mask.", _SEQUENCES),
    "pack": Entry("pack", "pack", "Pack documents into sequences of a fixed capacity.", _SEQUENCES),
    "plan": Entry("plan", "plan", "Compare orders of packed sequences over data-parallel ranks.", _SEQUENCES),
}
