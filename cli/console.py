"""What a person sees, on stderr: errors, summaries, progress. Plain lines in a pipe, tables on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from sft_toolkit.cli.flags import spelled
from sft_toolkit.cli.progress import clear_progress, hide_progress
from sft_toolkit.visible import visible

if TYPE_CHECKING:
    from sft_toolkit.running.options import Summary
    from sft_toolkit.stage import ColumnsRead


def print_error(message: str, hint: str = "") -> None:
    """One line: what and where, then what to do. What it quotes of files may not steer a terminal.

    Parameters that it names are spelled as flags.
    """
    line = " ".join(f"error: {spelled(message)}{'; ' + spelled(hint) if hint else ''}".splitlines())
    clear_progress()
    print(visible(line), file=sys.stderr)


def print_warning(message: str) -> None:
    """One line about what is odd but no error, shown as an error is."""
    hide_progress()
    print(visible(f"warning: {spelled(message)}"), file=sys.stderr)


def print_note(text: str, stream: TextIO | None = None) -> None:
    """A line for people, on stderr unless it is what the command was asked for."""
    print(visible(text), file=stream or sys.stderr)


def on_terminal() -> bool:
    return sys.stderr.isatty()


def print_json(value: Mapping[str, Any], stream: TextIO | None = None) -> None:
    """One JSON object for programs: on stdout, unless that carries data and `stream` is stderr."""
    from sft_toolkit.json_text import encode_text

    clear_progress()
    print(encode_text(value), file=stream or sys.stdout)


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]], stream: TextIO | None = None) -> None:
    """A table for people: drawn on a terminal, aligned columns elsewhere. Numbers stand right.

    `stream` is stderr unless the table is what the command was asked for.
    """
    clear_progress()
    stream = stream or sys.stderr
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [all(not isinstance(row[column], str) for row in rows) for column in range(len(header))]
    if stream.isatty():
        _draw_table(title, header, cells, numeric, stream)
        return
    widths = [max(len(text) for text in column) for column in zip(header, *cells, strict=True)]
    print(visible(title), file=stream)
    for row in [list(header), *cells]:
        padded = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, numeric, strict=True)
        ]
        print(visible("  " + "  ".join(padded).rstrip()), file=stream)


def _draw_table(title: str, header: Sequence[str], cells: list[list[str]], numeric: list[bool], stream: TextIO) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(visible(title)), title_justify="left", box=box.SIMPLE_HEAD)
    for name, right in zip(header, numeric, strict=True):
        table.add_column(name, justify="right" if right else "left")
    for row in cells:
        table.add_row(*map(Text, row))
    Console(file=stream).print(table)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}"
    if isinstance(value, int):
        return f"{value:,}"
    return "-" if value is None else visible(str(value))


def print_summary(summary: Summary) -> None:
    """In, out, why not, notes, tokens, seconds."""
    clear_progress()
    counters = summary.counters
    if summary.finished_before:
        print_note(f"{summary.stage}: {summary.output} is finished already, nothing to do")
        return
    rows: list[tuple[str, Any]] = [("records in", counters.records_in), ("records out", counters.records_out)]
    rows += [(f"rejected: {reason}", count) for reason, count in sorted(counters.rejected.items())]
    rows += [(name, count) for name, count in sorted(counters.notes.items())]
    rows += [("tokens", summary.tokens)] if summary.tokens else []
    rows += [("loss tokens", summary.loss_tokens)] if summary.loss_tokens else []
    rows += [("shards", summary.shards)] if summary.shards else []
    rate = counters.records_in / summary.seconds if summary.seconds > 0 else 0.0
    title = f"{summary.stage} -> {summary.output}: {summary.seconds:.1f} s, {rate:,.0f} records/s"
    print_table(title, ("what", "count"), rows)
    for line in column_lines(counters.files):
        print_note(line)
    if not summary.complete:
        print_note("parts of other jobs are left; the last to finish writes manifest.json")


def column_lines(files: Mapping[str, ColumnsRead]) -> list[str]:
    """A line for each input file on what its columns were read as; files that agree share one."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, columns in files.items():
        alike.setdefault(tuple(_uses(columns)), []).append(name)
    return [f"{_together(names)}: {', '.join(uses)}" for uses, names in alike.items()]


def _together(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"


def _uses(columns: ColumnsRead) -> list[str]:
    """`COLUMN as USE`, with the number of records where it is not so in all."""
    shown: list[str] = []
    kept: list[str] = []
    for column, uses in columns.uses.items():
        for use, records in uses.items():
            part = "" if records == columns.records else f" ({records:,} of {columns.records:,})"
            (kept if use == "kept" else shown).append(f"{column}{'' if use == 'kept' else f' as {use}'}{part}")
    return [*shown, *([f"kept: {' '.join(kept)}"] if kept else [])]
