"""`kolibri-sft stats`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sft_toolkit.cli.console import print_note, print_table, print_warning
from sft_toolkit.cli.options import Force, reading_command
from sft_toolkit.cli.progress import clear_progress
from sft_toolkit.errors import UsageError

if TYPE_CHECKING:
    from sft_toolkit.reporting.stats import Statistics
    from sft_toolkit.running.options import RunOptions

_SIZES = ("records", "exchanges", "turns", "trained_turns", "documents", "tokens", "loss_tokens")
_COUNTED = {
    "masked_turns": "turns without loss, by reason",
    "difficulties": "records by difficulty",
    "languages": "turns by language verdict",
}


@reading_command
def stats(
    run: RunOptions,
    tokenizer: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Measure reasoning in tokens of this tokenizer, not characters.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.parquet", help="Write the table there as well.")
    ] = None,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of tables.")] = False,
) -> None:
    """Say what each data set holds: records, tokens, loss, reasoning, efforts, difficulties, masks, languages.

    INPUT are records, token shards or packed shards; records given with either make one table of both.
    """
    from sft_toolkit.json_text import encode_text
    from sft_toolkit.reporting.stats import collect

    if output is not None:
        _check_output(output, run, force)
    found = collect(run, tokenizer)
    clear_progress()
    for reason, count in sorted(found.counters.rejected.items()):
        print_warning(f"{count:,} records not counted: {reason}")
    if output is not None:
        _write_parquet(found, output)
    if json:
        print(encode_text(found.to_json()))
    else:
        _print_tables(found)


def _check_output(output: Path, run: RunOptions, force: bool) -> None:
    from sft_toolkit.running.output_checks import check_file

    if output.suffix != ".parquet":
        raise UsageError(f"{output}: no Parquet file by its name", "name it FILE.parquet, or take --json from stdout")
    check_file(output, run, force=force)


def _write_parquet(found: Statistics, output: Path) -> None:
    import pyarrow.parquet as pq

    from sft_toolkit.reporting.stats_table import arrow_table
    from sft_toolkit.shards.atomic import atomic_path

    with atomic_path(output) as temporary:
        pq.write_table(arrow_table(found), temporary)


def _print_tables(found: Statistics) -> None:
    report = found.to_json()
    rows = [*report["datasets"], {"dataset": "all", **report["total"]}]
    sizes = [name for name in _SIZES if any(name in row for row in rows)]
    header = ["data set", *(name.replace("_", " ") for name in sizes)]
    _print("data sets", header, [[row["dataset"], *(row.get(name) for name in sizes)] for row in rows])
    if found.packed:
        print_note(f"{found.packed['sequences']:,} sequences", sys.stdout)
    if found.records:
        _print_reasoning(found.unit, rows)
    for name, title in (("efforts", "exchanges by effort"), ("document_efforts", "documents by effort")):
        if name == "efforts" or not found.records:
            _print_counters(title, name, rows)
    for name, title in _COUNTED.items():
        _print_counters(title, name, rows)


def _print_reasoning(unit: str, rows: list[dict[str, Any]]) -> None:
    columns = list(rows[-1]["reasoning"])
    body = [
        [
            row["dataset"],
            row["exchanges_with_reasoning"],
            row["exchanges_without_reasoning"],
            *(None if not row["reasoning"] else round(row["reasoning"][name]) for name in columns),
        ]
        for row in rows
    ]
    _print(f"reasoning of an exchange, in {unit}", ["data set", "with", "without", *columns], body)


def _print_counters(title: str, name: str, rows: list[dict[str, Any]]) -> None:
    """A column for each label; nothing where there is none but the missing one."""
    labels = [label for label in _in_order(rows[-1].get(name, {})) if label]
    if not set(labels) - {"-"}:
        return
    body = [[row["dataset"], *(row[name].get(label, 0) for label in labels)] for row in rows]
    _print(title, ["data set", *("no label" if label == "-" else label for label in labels)], body)


def _in_order(labels: dict[str, int]) -> list[str]:
    """Efforts from none to high, and difficulties from easy to hard; all others by name, the missing label last."""
    known = ("none", "low", "easy", "medium", "hard", "high")
    return sorted(labels, key=lambda label: (label == "-", known.index(label) if label in known else len(known), label))


def _print(title: str, header: list[str], rows: list[list[Any]]) -> None:
    print_table(title, header, rows, sys.stdout)
    print()
