"""`stats`: counts of records, tokens and packed shards by data set, against sums made by hand."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from sft_toolkit.errors import UsageError
from sft_toolkit.reporting.dataset_counts import QUANTILES, DataSetCounts
from sft_toolkit.reporting.stats import collect
from sft_toolkit.reporting.stats_table import arrow_table
from sft_toolkit.running.options import RunOptions
from sft_toolkit.stages.pack.two_passes import PackOptions, run_pack
from tests.conftest import RunCli
from tests.token_shards import Document, write_token_folder


def exchange(effort: str | None, reasoning: str | None, **more: Any) -> list[dict[str, Any]]:
    label = {} if effort is None else {"effort": effort}
    thought = {} if reasoning is None else {"reasoning": reasoning}
    return [{"role": "user", "content": "q", **label}, {"role": "assistant", "content": "a", **thought, **more}]


RECORDS = [
    {"dataset": "maths", "difficulty": "hard", "messages": [*exchange("low", "123"), *exchange("high", " 1234567\n")]},
    {"dataset": "maths", "messages": exchange("none", None, weight=0)},
    {
        "dataset": "tools",
        "difficulty": "easy",
        "messages": exchange("low", "12345", weight=0, mask_reason="unknown_tool", mask_detail="x"),
    },
    {"messages": exchange(None, "1", language_verdict={"language": "de", "stays": False}), "effort": "medium"},
]
DOCUMENTS = [
    Document("a", [1, 2, 3], [False, True, True], "maths"),
    Document("b", [1, 2], [False, True], "maths"),
    Document("c", [1, 2, 3, 4, 5], [False, False, False, True, True], None),
]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps({"id": f"r{n}", **record}) + "\n" for n, record in enumerate(RECORDS)))
    return path


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    return write_token_folder(tmp_path / "tokens", DOCUMENTS, shards=2)


def run_over(*inputs: Path) -> RunOptions:
    return RunOptions(inputs=[str(path) for path in inputs], workers=1)


def test_records_are_counted_by_data_set(records: Path) -> None:
    report = collect(run_over(records), None).to_json()
    unnamed, maths, tools = report["datasets"]
    assert [row["dataset"] for row in report["datasets"]] == ["-", "maths", "tools"]
    assert (maths["records"], maths["exchanges"], maths["turns"], maths["trained_turns"]) == (2, 3, 3, 2)
    assert maths["masked_turns"] == {"weight 0 in the input": 1}
    assert (maths["exchanges_with_reasoning"], maths["exchanges_without_reasoning"]) == (2, 1)
    assert maths["reasoning"] == {"p10": 3.4, "p30": 4.2, "p50": 5.0, "p70": 5.8, "p90": 6.6, "longest": 7.0}
    assert maths["efforts"] == {"high": 1, "low": 1, "none": 1}
    assert maths["difficulties"] == {"-": 1, "hard": 1}
    assert tools["masked_turns"] == {"unknown_tool": 1}
    assert unnamed["efforts"] == {"medium": 1} and unnamed["languages"] == {"de drifts": 1}
    assert report["reasoning_unit"] == "characters"
    assert report["total"]["records"] == 4 and report["total"]["efforts"] == {
        "high": 1,
        "low": 2,
        "medium": 1,
        "none": 1,
    }
    assert "tokens" not in report["total"]


def test_reasoning_is_measured_in_tokens_as_effort_does(records: Path, sample_data: Path) -> None:
    found = collect(run_over(records), sample_data / "tokenizer")
    assert found.unit == "tokens"
    tokenizer = Tokenizer.from_file(str(sample_data / "tokenizer" / "tokenizer.json"))
    texts = ("123", " 1234567\n")
    assert sorted(found.records["maths"].reasoning) == sorted(len(tokenizer.encode(text).ids) for text in texts)


def test_token_shards_are_summed_by_data_set(tokens: Path) -> None:
    report = collect(run_over(tokens), None).to_json()
    assert report["datasets"] == [
        {"dataset": "-", "documents": 1, "tokens": 5, "loss_tokens": 2, "document_efforts": {"low": 1}},
        {"dataset": "maths", "documents": 2, "tokens": 5, "loss_tokens": 3, "document_efforts": {"low": 2}},
    ]
    assert report["total"] == {"documents": 3, "tokens": 10, "loss_tokens": 5, "document_efforts": {"low": 3}}


def test_records_and_tokens_together_make_one_row_a_data_set(records: Path, tokens: Path) -> None:
    rows = {row["dataset"]: row for row in collect(run_over(tokens, records), None).to_json()["datasets"]}
    assert (rows["maths"]["records"], rows["maths"]["loss_tokens"]) == (2, 3)
    assert (rows["tools"]["records"], rows["tools"]["loss_tokens"]) == (1, 0)


def test_packed_shards_know_documents_tokens_and_loss_of_each_data_set(tokens: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    run_pack(PackOptions(capacity=8), RunOptions(inputs=[str(tokens)], output=str(packed), workers=1))
    report = collect(run_over(packed), None).to_json()
    assert report["datasets"] == [
        {"dataset": "-", "documents": 1, "tokens": 5, "loss_tokens": 2},
        {"dataset": "maths", "documents": 2, "tokens": 5, "loss_tokens": 3},
    ]
    assert report["total"] == {"documents": 3, "tokens": 10, "loss_tokens": 5, "sequences": 2}
    with pytest.raises(UsageError, match="the same tokens would count twice"):
        collect(run_over(packed, tokens), None)


@given(st.lists(st.integers(1, 300_000), min_size=1, max_size=200))
def test_quantiles_are_numpys_linear_percentiles(lengths: list[int]) -> None:
    found = DataSetCounts(reasoning=Counter(lengths)).quantiles()
    assert found.pop("longest") == max(lengths)
    assert list(found.values()) == pytest.approx(np.percentile(lengths, QUANTILES))


def test_counts_do_not_depend_on_blocks(records: Path) -> None:
    runs = (run_over(records), RunOptions(inputs=[str(records)], rows_per_shard=1, workers=2))
    assert collect(runs[0], None).to_json() == collect(runs[1], None).to_json()


def test_the_table_is_columns_of_counts_and_maps(records: Path, tokens: Path) -> None:
    table = arrow_table(collect(run_over(records, tokens), None))
    assert table["dataset"].to_pylist() == ["-", "maths", "tools"]
    assert table["reasoning_p50"].to_pylist() == [1.0, 5.0, 5.0]
    assert dict(table["efforts"].to_pylist()[1]) == {"high": 1, "low": 1, "none": 1}
    assert table["loss_tokens"].to_pylist() == [2, 3, 0]


def test_a_person_gets_tables_a_program_json_and_parquet(run_cli: RunCli, records: Path, tokens: Path) -> None:
    target = records.with_suffix(".parquet")
    done = run_cli("stats", records, tokens, "-o", target)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert " ".join(lines[1].split()) == "data set records exchanges turns trained turns documents tokens loss tokens"
    assert lines[-1] == "" and any(line.split() == ["maths", "2", "3", "3", "2", "2", "5", "3"] for line in lines)
    assert any(line.split()[:2] == ["data", "set"] and "no label" in line for line in lines)
    assert pq.read_table(target)["records"].to_pylist() == [1, 2, 1]
    again = run_cli("stats", records, "-o", target)
    assert again.returncode == 2 and b"--force" in again.stderr
    assert json.loads(run_cli("stats", records, "--json").stdout)["total"]["exchanges"] == 5
