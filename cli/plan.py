"""`kolibri-sft plan`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit.cli.console import print_table
from sft_toolkit.cli.guard import guarded
from sft_toolkit.cli.options import Config, Debug, Seed

if TYPE_CHECKING:
    from sft_toolkit.reporting.order_comparison import Comparison

_DATASETS_SHOWN = 12
_LEGEND = """\
efficiency: mean / slowest rank of a microbatch; tokens/s: beside random order; deff: design effect,
variance of the steps' mean cost over that of random steps; mix distance: of a step's data sets from all data, 0 to 1"""


@guarded
def plan(
    packed: Annotated[Path, typer.Argument(metavar="PACKED", help="Folder of packed shards.")],
    ranks: Annotated[int, typer.Option(help="Data-parallel ranks.", min=1)] = 64,
    microbatches: Annotated[
        int, typer.Option(help="Gradient accumulation steps: sequences of each rank per optimiser step.", min=1)
    ] = 8,
    buffer: Annotated[int, typer.Option(help="Sequences per rank that are sorted together.", min=1)] = 256,
    attention_share: Annotated[
        float, typer.Option(help="Share of the mean step that goes with attention cost; the rest goes with tokens.")
    ] = 0.5,
    seed: Seed = 0,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of tables.")] = False,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Compare orders of packed sequences over data-parallel ranks, by simulating an epoch of each."""
    from sft_toolkit.json_text import encode_text
    from sft_toolkit.reporting.order_comparison import PlanOptions, compare_orders

    comparison = compare_orders(packed, PlanOptions(ranks, microbatches, buffer, attention_share, seed))
    if json:
        print(encode_text(comparison.to_json()))
    else:
        _print_balance(comparison)
        _print_mix(comparison)


def _print_balance(comparison: Comparison) -> None:
    from sft_toolkit.reporting.order_comparison import known

    options = comparison.options
    rows = [
        (
            figures.order,
            figures.balance.efficiency,
            f"x{comparison.speed_up(figures):.2f}",
            known(figures.balance.deff),
            known(figures.balance.total_variation),
        )
        for figures in comparison.orders
    ]
    title = (
        f"{comparison.sequences:,} sequences over {options.ranks} ranks x {options.microbatches} microbatches: "
        f"{comparison.steps:,} {'step' if comparison.steps == 1 else 'steps'}, "
        f"{comparison.filler:,} places of the last one empty"
    )
    print_table(title, ("order", "efficiency", "tokens/s", "deff", "mix distance"), rows, sys.stdout)
    print(_LEGEND)
    if comparison.sequences < options.ranks * options.microbatches:
        print("fewer sequences than one step takes: no order can balance these ranks; try fewer, or more data")
    elif comparison.steps * options.microbatches <= options.buffer:
        print("all sequences fit into one window: a longer epoch would show more truly what the buffer is worth")


def _print_mix(comparison: Comparison) -> None:
    by_share = sorted(range(len(comparison.mix)), key=lambda place: -comparison.mix[place])
    shown = [figures for figures in comparison.orders if figures.order != "within-step"]  # the batches of random order
    columns = [comparison.mix, *(figures.step_mix for figures in shown)]
    rows = [
        (comparison.datasets[place] or "-", *(f"{column[place]:.1%}" for column in columns))
        for place in by_share[:_DATASETS_SHOWN]
    ]
    if rest := by_share[_DATASETS_SHOWN:]:
        sums = (sum(column[place] for place in rest) for column in columns)
        rows.append((f"{len(rest)} more", *(f"{share:.1%}" for share in sums)))
    header = ("data set", "all data", *(figures.order for figures in shown))
    print()
    print_table("data sets of one step, by tokens", header, rows, sys.stdout)
