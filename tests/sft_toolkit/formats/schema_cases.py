"""The cases of records in the shapes of public data sets, run in this process and compared as their checker does."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

from sft_toolkit.cli.flags import spelled
from sft_toolkit.errors import RecordError, UsageError
from sft_toolkit.formats import RecordReader
from sft_toolkit.formats.mapping import parse_mapping
from sft_toolkit.json_text import decode, encode_text
from tests.conftest import CASES

FOLDER = CASES / "schemas"


@cache
def checker() -> ModuleType:
    """The checker that comes with the cases."""
    spec = importlib.util.spec_from_file_location("check_schemas", FOLDER / "check_schemas.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def cases() -> list[dict[str, Any]]:
    return [decode(line) for line in (FOLDER / "schemas.jsonl").read_text().splitlines()]


def checks() -> Iterator[tuple[str, dict[str, Any], list[str], dict[str, Any]]]:
    """(name, case, mapping lines, what is expected), one for each reading of a case."""
    for case in cases():
        yield case["id"], case, [] if case["how"] == "auto" else case["how"], case["expect"]
        if "alone" in case:
            yield f"{case['id']}/alone", case, [], case["alone"]


def read_all(records: list[Any], lines: list[str], padded: bool = False) -> list[dict[str, Any]]:
    """The records as convert writes them."""
    reader = RecordReader(mapping=parse_mapping(lines))
    return [one.to_record() for record in records for one in reader.read(record, padded)]


def problem(case: dict[str, Any], lines: list[str], expect: dict[str, Any]) -> str | None:
    """What differs from the expectation, None where all holds."""
    try:
        written = read_all(case["input"], lines)
    except (RecordError, UsageError) as error:
        said = spelled(f"{error.detail if isinstance(error, RecordError) else error.message}; {error.hint}")
        missing = [name for name in expect.get("refuse", ["?"]) if name not in said]
        return f"refused, not naming {missing}: {said}" if missing else None
    if "refuse" in expect:
        return f"read, where a refusal is expected: {written}"
    got = [checker().loads(encode_text(record)) for record in written]
    return compared(case, expect["records"], got)


def compared(case: dict[str, Any], wanted: list[dict[str, Any]], got: list[dict[str, Any]]) -> str | None:
    wanted = checker().loads(json.dumps(wanted, default=float))
    if len(got) != len(wanted):
        return f"{len(wanted)} records expected, {len(got)} found"
    differing = (checker().differs(want, record) for want, record in zip(wanted, got, strict=True))
    lost = [key for key, value in case.get("keeps", {}).items() if not checker().same(value, got[0].get(key))]
    return next((found for found in differing if found), f"{lost[0]} did not survive" if lost else None)
