"""Records that occur again: named with both places, dropped where they are exact, or numbered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.errors import ToolkitError
from sft_toolkit.running.options import RunOptions
from sft_toolkit.running.repeats import repeats_handled
from sft_toolkit.running.row_reader import RowReader
from sft_toolkit.running.runner import run_stage
from sft_toolkit.stages.convert import ConvertStage


class DrawingStage(ConvertStage):
    """Converts, and says that it draws by ids."""

    @property
    def draws(self) -> bool:
        return True


def pair(question: str, **more: Any) -> dict[str, Any]:
    return {"instruction": question, "output": "a", **more}


RECORDS = [pair("one"), pair("two"), pair("one"), pair("one"), pair("x", id="i"), pair("y", id="i"), pair("x", id="i")]


def written(tmp_path: Path, duplicates: str, records: list[dict[str, Any]] = RECORDS, **more: Any) -> list[Any]:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps(record) + "\n" for record in records))
    reader = RowReader(duplicates=duplicates)
    run = RunOptions([str(source)], output=str(target), reader=reader, workers=1, force=True, **more)
    with repeats_handled(run) as ready:
        run_stage(DrawingStage(), ready)
    return [json.loads(line) for line in target.read_text().splitlines()]


def test_an_id_that_occurs_twice_is_named_with_both_lines(tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match=r"in.jsonl:3: record id '\w+' occurs more than once, first at .*in.jsonl:1"):
        written(tmp_path, "error")


def test_repeats_are_numbered_from_the_second_on(tmp_path: Path) -> None:
    ids = [record["id"] for record in written(tmp_path, "number")]
    first, second = ids[:2]
    assert ids == [first, second, f"{first}#1", f"{first}#2", "i", "i#1", "i#2"]


def test_only_exact_repeats_are_dropped(tmp_path: Path) -> None:
    records = [record for record in RECORDS if record["instruction"] != "y"]
    assert [record["messages"][0]["content"] for record in written(tmp_path, "drop", records)] == ["one", "two", "x"]
    with pytest.raises(ToolkitError, match=r"in.jsonl:6: record id 'i' occurs more than once, first at .*:5"):
        written(tmp_path, "drop")


@pytest.mark.parametrize("duplicates", ["drop", "number"])
def test_blocks_of_any_size_give_the_same_records(duplicates: str, tmp_path: Path) -> None:
    records = RECORDS if duplicates == "number" else RECORDS[:5]
    whole = written(tmp_path, duplicates, records)
    assert written(tmp_path, duplicates, records, rows_per_shard=1) == whole
