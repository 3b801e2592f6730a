"""The same records from JSONL, Parquet, Arrow and datasets: structs padded with nulls, or JSON text in columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sft_toolkit.errors import RecordError
from sft_toolkit.formats import RecordReader
from sft_toolkit.formats.mapping import parse_mapping
from sft_toolkit.json_text import encode_text
from sft_toolkit.shards.sources import Source
from tests.sft_toolkit.formats.schema_cases import checker, checks, compared

CHECKS = list(checks())
PADDING = [{"messages": [{"role": "user", "content": "x", "padding": "p", "tool_calls": [{"id": "c", "pad": 1}]}]}]


def plain(case: dict[str, Any]) -> list[dict[str, Any]]:
    """The records of a case as Python's own reader gives them."""
    return [json.loads(encode_text(record)) for record in case["input"]]


def as_structs(records: list[dict[str, Any]]) -> pa.Table | None:
    """A table of structs, padded with the keys of a foreign row where the types agree; None where they never do."""
    for rows in ([*records, *PADDING], records):
        try:
            return pa.Table.from_pylist(rows, schema=_schema(rows)).slice(0, len(records))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            continue
    return None


def _schema(rows: list[dict[str, Any]]) -> pa.Schema:
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: pa.array([row.get(name) for row in rows]) for name in names}
    return pa.schema([(name, column.type) for name, column in columns.items() if column.type != pa.null()])


def as_texts(records: list[dict[str, Any]]) -> pa.Table:
    """A table in which every list and object is JSON text."""
    names = dict.fromkeys(name for record in records for name in record)
    rows = [{name: _text(record.get(name)) for name in names} for record in records]
    return pa.Table.from_pylist(rows)


def _text(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def read(path: Path, lines: list[str]) -> Iterator[dict[str, Any]]:
    reader = RecordReader(mapping=parse_mapping(lines))
    for block in Source([str(path)]).blocks(100, path.parent):
        for row in block.read():
            assert row.error is None
            yield from (one.to_record() for one in reader.read(row.record, row.padded))


def differences(case: dict[str, Any], lines: list[str], expect: dict[str, Any], path: Path) -> str | None:
    try:
        got = [checker().loads(encode_text(record)) for record in read(path, lines)]
    except RecordError as error:
        return None if "refuse" in expect else f"refused: {error.detail}"
    return "read" if "refuse" in expect else compared({}, expect["records"], got)


@pytest.mark.parametrize(("form", "kind"), [(as_structs, "parquet"), (as_structs, "arrow"), (as_texts, "parquet")])
def test_a_table_gives_what_jsonl_gives(form: Any, kind: str, tmp_path: Path) -> None:
    found = {}
    for number, (name, case, lines, expect) in enumerate(CHECKS):
        if expect.get("refuse") == ["asistant", "assistant"]:
            continue
        table = form(plain(case))
        if table is None or table.num_columns == 0:
            continue
        path = tmp_path / f"{number}.{kind}"
        write = {"parquet": pq.write_table, "arrow": write_arrow}[kind]
        write(table, path)
        problem = differences(case, lines, expect, path)
        if problem is not None and not lost_by_storage(name, form):
            found[name] = problem
    assert found == {}


def write_arrow(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(str(path), table.schema) as file:
        file.write_table(table)


def lost_by_storage(name: str, form: Any) -> bool:
    """Text is text: a list that is stored as text is no list any more where text is wanted."""
    return form is as_texts and name in ("label-id-list", "many-no-choice")


def test_rows_of_datasets_give_what_jsonl_gives(tmp_path: Path) -> None:
    names = ["call-roles-swift", "struct-bedrock", "system-gemini", "flag-slimorca", "label-difficulty-int"]
    for name, case, _, expect in CHECKS:
        if name in names:
            folder = tmp_path / name
            folder.mkdir()
            pq.write_table(as_structs(plain(case)), folder / "train.parquet")
            datasets.disable_progress_bars()
            [block] = Source([f"hf:{folder}"]).blocks(10, tmp_path)
            got = [one for row in block.read() for one in RecordReader().read(row.record, row.padded)]
            written = [checker().loads(encode_text(one.to_record())) for one in got]
            assert compared(case, expect["records"], written) is None, name


def test_numbers_that_are_none_and_empty_text_are_nothing() -> None:
    record = {
        "messages": [{"role": "user", "content": "q", "weight": None}, {"role": "assistant", "content": "a"}],
        "difficulty": float("nan"),
        "tools": "",
        "system": "",
        "functions": None,
        "score": float("nan"),
        "limit": float("inf"),
    }
    read_one = RecordReader().read(record, padded=True)[0].to_record()
    assert read_one == {
        "id": read_one["id"],
        "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}],
        "limit": "Infinity",
    }
