"""Writes the tables of data sets in docs/formats.md from the cases: `python docs/data_sets.py`.

Every row is what the reader itself makes of records in the shape of that data set.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sft_toolkit.cli.flags import spelled
from sft_toolkit.errors import RecordError
from sft_toolkit.formats import RecordReader
from sft_toolkit.formats.mapping import parse_mapping

TARGET = Path(__file__).with_name("formats.md")
CASES = Path(__file__).parents[1] / "tests" / "cases" / "schemas" / "schemas.jsonl"
BEGIN, END = "<!-- written by docs/data_sets.py -->", "<!-- end -->"
# Kinds of cases that are about rules, not about a data set.
_RULES = frozenset({"look-alikes", "mapping"})


def page() -> str:
    """The page with its tables written anew; the text around them is as it stands."""
    before, _, rest = TARGET.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables()}\n{END}{after}"


def tables() -> str:
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    cases = [case for case in cases if case["kind"] not in _RULES]
    read: dict[tuple[str, str], str] = {}
    for case in cases:
        for key, row in rows(case):
            read.setdefault(key, row)
    refused = dict.fromkeys(row for case in cases for row in refusals(case))
    return "\n".join(
        [
            "| data set or format | read | its columns | kept as they are |",
            "| --- | --- | --- | --- |",
            *read.values(),
            "",
            "| data set or format | refused |",
            "| --- | --- |",
            *refused,
            "",
        ]
    ).replace("<", "&lt;")


def rows(case: dict[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    """The row of a case that is read, alone or by its mapping; two of one data set that are read alike share one."""
    lines = [] if case["how"] == "auto" else case["how"]
    if "records" not in case["expect"]:
        return
    conversation = RecordReader(mapping=parse_mapping(lines)).read(case["input"][0])[0]
    columns = ", ".join(f"`{column}` as {use}" for column, use in conversation.columns)
    kept = ", ".join(f"`{name}`" for name in conversation.extra)
    yield (case["schema"], how(lines)), f"| {case['schema']} | {how(lines)} | {columns} | {kept} |"


def refusals(case: dict[str, Any]) -> Iterator[str]:
    """The row of a case that is refused without a mapping and has none."""
    if "refuse" not in case["expect"] or case["how"] != "auto":
        return
    try:
        RecordReader().read(case["input"][0])
    except RecordError as error:
        said = spelled("; ".join(part for part in (error.detail, error.hint) if part))
        yield f"| {case['schema']} | {said.replace('|', chr(92) + '|')} |"


def how(lines: list[str]) -> str:
    return "alone" if not lines else " ".join(f"`--map {shlex.quote(line)}`" for line in lines)


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
