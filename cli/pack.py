"""`kolibri-sft pack`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sft_toolkit.choices import Overlong, PackingMethod
from sft_toolkit.cli.console import print_table
from sft_toolkit.cli.options import Seed, folder_command
from sft_toolkit.cli.run_and_report import report_summary

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions

_INT32_MAX = 2**31 - 1  # shards hold bounds of documents as int32

TokenFolders = Annotated[list[str], typer.Argument(metavar="TOKENS...", help="Folders of token shards, as of render.")]
PackedFolder = Annotated[str, typer.Option("-o", "--output", help="Folder for packed shards.")]


@folder_command(TokenFolders, PackedFolder)
def pack(
    run: RunOptions,
    capacity: Annotated[
        int, typer.Option(metavar="TOKENS", help="Tokens of a full sequence.", min=2, max=_INT32_MAX)
    ] = 262_144,
    k: Annotated[int, typer.Option("-k", help="Open bins: the k of Next-k-Fit.", min=1, max=_INT32_MAX)] = 256,
    method: Annotated[
        PackingMethod,
        typer.Option(help="nkf: Next-k-Fit. bfd: best fit decreasing by chunks, for data without short documents."),
    ] = "nkf",
    overlong: Annotated[Overlong, typer.Option(help="What becomes of a document over the capacity.")] = "error",
    no_shuffle: Annotated[
        bool, typer.Option("--no-shuffle", help="Keep input order; else documents are shuffled by seed and id.")
    ] = False,
    labels: Annotated[
        bool,
        typer.Option("--labels", help="Add labels (-100: masked), position_ids and seq_lengths, for other trainers."),
    ] = False,
    seed: Seed = 0,
) -> None:
    """Pack documents into sequences of a fixed capacity.

    --rows-per-shard counts sequences here; a shard ends at about 1 GiB in any case.
    """
    from sft_toolkit.stages.pack.two_passes import PackOptions, run_pack

    options = PackOptions(capacity, k, method, overlong, not no_shuffle, labels, seed)
    summary = run_pack(options, run)
    report_summary(summary, run)
    if run.summary_format == "text" and summary.facts:
        print_table(f"sequences of {capacity:,} tokens", ("what", "value"), _statistics(summary.facts))


def _statistics(facts: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        ("sequences", f"{facts['sequences']:,}"),
        ("padding", f"{facts['padding']:.4%}"),
        ("documents per sequence", f"{facts['documents_per_sequence']:,.1f}"),
        ("cost: least", _squared(facts["cost_min"])),
        ("cost: median", _squared(facts["cost_median"])),
        ("cost: greatest", _squared(facts["cost_max"])),
        ("cost: deviation / mean", f"{facts['cost_cv']:.2f}"),
    ]


def _squared(cost: int) -> str:
    """A cost in units of (1,024 tokens)^2, as the report gives it."""
    return f"{cost / 2**20:,.3g} k^2" if cost < 2**20 else f"{cost / 2**20:,.0f} k^2"
