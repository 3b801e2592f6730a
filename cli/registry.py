"""The commands, their modules and their line of help: read without importing any of them."""

from __future__ import annotations

from typing import NamedTuple

_RECORDS, _TEACHERS, _SEQUENCES, _MODELS, _SHELL = "Records", "Teachers", "Sequences", "Models", "Shell"


class Entry(NamedTuple):
    """`sft_toolkit.cli.<module>:<attribute>`, a function or a Typer of subcommands."""

    module: str
    attribute: str
    help: str
    panel: str


COMMANDS = {
    "convert": Entry("convert", "convert", "Read any known format, write the toolkit's records.", _RECORDS),
    "distill": Entry(
        "distill", "distill", "Collect reasoning traces from a teacher, opened in its language.", _TEACHERS
    ),
    "backfill": Entry("backfill", "backfill", "Write the reasoning that tool calls lack.", _TEACHERS),
    "verify": Entry("verify", "verify", "Keep backfilled reasoning from which the same call follows.", _TEACHERS),
    "language": Entry("language", "language", "Judge whether reasoning stays in its language.", _RECORDS),
    "mask": Entry(
        "mask",
        "mask",
        "Take wrong tool calls out of the loss: unknown tools, invalid arguments, repeats of a failed call.",
        _RECORDS,
    ),
    "score": Entry("score", "score", "Say which attempts at a prompt are right, and how often it is solved.", _RECORDS),
    "select": Entry(
        "select", "select", "Keep right attempts at prompts of a range of pass rates, a few of each.", _RECORDS
    ),
    "dedup": Entry("dedup", "dedup", "Keep one record of each cluster of equal and nearly equal ones.", _RECORDS),
    "decontaminate": Entry(
        "decontaminate",
        "decontaminate",
        "Reject what overlaps with a benchmark, and report what such a filter misses.",
        _RECORDS,
    ),
    "effort": Entry("effort", "app", "Draw soft effort labels from reasoning lengths.", _RECORDS),
    "grade": Entry(
        "grade", "app", "Label how difficult prompts are, by a classifier distilled from a teacher.", _RECORDS
    ),
    "mix": Entry("mix", "mix", "Mix data sets by weights or token budgets, whole records at a time.", _RECORDS),
    "render": Entry(
        "render",
        "render",
        "Render conversations to tokens with an exact loss mask, with any chat template.",
        _SEQUENCES,
    ),
    "pack": Entry("pack", "pack", "Pack documents into sequences of a fixed capacity.", _SEQUENCES),
    "plan": Entry(
        "plan",
        "plan",
        "Compare orders of packed sequences over data-parallel ranks, by simulating an epoch of each.",
        _SEQUENCES,
    ),
    "stats": Entry(
        "stats",
        "stats",
        "Say what each data set holds: records, tokens, loss, reasoning, efforts, difficulties, masks, languages.",
        _SEQUENCES,
    ),
    "status": Entry(
        "status",
        "status",
        "Say of shard folders which blocks are done or missing, who works on them, and what to submit again.",
        _SEQUENCES,
    ),
    "inspect": Entry("inspect", "inspect", "Look at a record, a rendered document or a packed sequence.", _SEQUENCES),
    "check": Entry("check", "check", "Report what a chat template does and what it would train wrongly.", _SEQUENCES),
    "train": Entry(
        "train",
        "train",
        "Train a causal language model on packed shards with FSDP, documents kept apart, to the exact mean loss.",
        _MODELS,
    ),
    "soup": Entry(
        "soup",
        "soup",
        "Average checkpoints exactly: one rounding, bounded memory, every tensor accounted for.",
        _MODELS,
    ),
    "mergemix": Entry("mergemix", "app", "Rank data mixtures by merged specialists.", _MODELS),
    "completion": Entry("completion", "completion", "Print what makes TAB complete in bash, zsh or fish.", _SHELL),
}
