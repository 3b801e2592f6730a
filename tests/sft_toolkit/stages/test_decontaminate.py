"""decontaminate: what overlaps with a benchmark, what is rejected of it, and what planted items say of the filter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.errors import ToolkitError
from sft_toolkit.json_text import decode, encode
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.stages.choosing.decontaminate import DecontaminateOptions, run_decontaminate
from tests.conftest import CASES

LINES = [decode(line) for line in (CASES / "choosing" / "decontaminate.jsonl").read_text().splitlines()]
ITEMS = [line["item"] for line in LINES if "item" in line]
PLANTED = [line for line in LINES if "record" in line]


def write(path: Path, rows: list[Any]) -> str:
    path.write_bytes(b"".join(encode(row) + b"\n" for row in rows))
    return str(path)


def cleaned(
    folder: Path, records: list[Any], items: list[Any] = ITEMS, **how: Any
) -> tuple[dict[str, Any], list[Any], Summary]:
    against = (write(folder / "bench.jsonl", items),)
    kept, lost = folder / "kept.jsonl", folder / "lost.jsonl"
    source = write(folder / "in.jsonl", records)
    run = RunOptions([source], output=str(kept), quarantine_file=str(lost), workers=1)
    options = {"fields": ("question", "answer"), "allow_boilerplate": True, **how}
    summary = run_decontaminate(DecontaminateOptions(against, **options), run)
    rows = {row["id"]: row for row in map(decode, kept.read_bytes().splitlines())}
    return rows, [decode(line) for line in lost.read_bytes().splitlines()], summary


def asking(name: str, *prompts: str) -> dict[str, Any]:
    turns = [({"role": "user", "content": text}, {"role": "assistant", "content": "Gern."}) for text in prompts]
    return {"id": name, "messages": [message for pair in turns for message in pair]}


def test_the_small_set_gets_its_hits_and_each_names_its_item(tmp_path: Path) -> None:
    rows, _, summary = cleaned(tmp_path, [line["record"] for line in PLANTED], reject="none")
    for line in PLANTED:
        truth, hits = line["truth"], rows[line["truth"]["id"]]["contamination"]
        assert truth["expect"] in ("hit" if hits else "none", "either"), (truth, hits)
        assert not hits or truth["item"] == hits[0]["item"], (truth, hits)
    assert summary.facts["too_short_to_tell"] == 3
    assert set(summary.facts["hits_by_how"]) == {"exact", "shingles", "fuzzy"}
    assert summary.facts["hits_by_role"]["assistant"] == 2


def test_a_hit_says_where_it_stands(tmp_path: Path) -> None:
    record = asking("r", "Hallo.", f"Bitte: {ITEMS[0]['question']} Danke.")
    rows, _, _ = cleaned(tmp_path, [record], reject="none")
    (hit,) = rows["r"]["contamination"]
    text = record["messages"][2]["content"]
    assert text[hit["start"] : hit["end"]] == ITEMS[0]["question"].rstrip("?")
    assert {name: hit[name] for name in ("item", "field", "turn", "role", "score", "how")} == {
        "item": "q1",
        "field": "question",
        "turn": 2,
        "role": "user",
        "score": 1.0,
        "how": "shingles",
    }


def test_the_record_the_exchange_or_the_prompt_is_rejected(tmp_path: Path) -> None:
    question = ITEMS[0]["question"]
    records = [asking("late", "Hallo.", question, "Danke."), asking("first", question), asking("clean", "Hallo.")]
    rows, lost, _ = cleaned(tmp_path, records)
    assert list(rows) == ["clean"]
    assert [(line["record"]["id"], line["reason"], line["partner"]) for line in lost] == [
        ("late", "contaminated", ["q1"]),
        ("first", "contaminated", ["q1"]),
    ]
    (tmp_path / "exchange").mkdir()
    rows, lost, _ = cleaned(tmp_path / "exchange", records, reject="exchange")
    assert {name: len(row["messages"]) for name, row in rows.items()} == {"late": 2, "clean": 2}
    (tmp_path / "prompt").mkdir()
    answered = {"id": "a", "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": question}]}
    twin = {"id": "b", "messages": [answered["messages"][0], {"role": "assistant", "content": "Nein."}]}
    rows, lost, _ = cleaned(tmp_path / "prompt", [answered, twin, records[2]], reject="prompt")
    assert list(rows) == ["clean"]
    assert [line["partner"] for line in lost] == [["q1"], ["q1"]]


def test_reasoning_and_arguments_are_searched_and_tool_results_are_not(tmp_path: Path) -> None:
    question = ITEMS[0]["question"]
    call = {"id": "1", "type": "function", "function": {"name": "ask", "arguments": {"text": question}}}
    messages = [
        {"role": "system", "content": question},
        {"role": "user", "content": "Los."},
        {"role": "assistant", "reasoning": question, "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": question},
    ]
    rows, _, _ = cleaned(tmp_path, [{"id": "r", "messages": messages}], reject="none")
    assert [(hit["turn"], hit["part"]) for hit in rows["r"]["contamination"]] == [(2, "reasoning"), (2, "arguments")]


def test_an_item_that_hits_too_many_records_stops_the_run_by_name(tmp_path: Path) -> None:
    records = [asking(f"r{n:02}", ITEMS[0]["question"] if n < 20 else f"Frage {n}?") for n in range(40)]
    with pytest.raises(ToolkitError, match="item q1 hits 20 of 40"):
        cleaned(tmp_path, records, allow_boilerplate=False)
    assert not (tmp_path / "kept.jsonl").exists()


@pytest.mark.parametrize(("items", "message"), [([], "no items"), ([{"id": "x", "other": "y"}], "no item has a text")])
def test_a_benchmark_without_items_or_fields_is_an_error(items: list[Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match=message):
        cleaned(tmp_path, [asking("r", "Hallo.")], items)


def test_planted_items_report_recall_with_intervals_beside_a_shuffled_benchmark(tmp_path: Path) -> None:
    records = [asking(f"r{n}", f"Erzähle mir etwas über Nummer {n} im Garten.") for n in range(30)]
    planted = cleaned(tmp_path, records, planted=20)[2].facts["planted"]
    assert set(planted) == {"verbatim", "wrapped", "words_1", "words_3", "locale", "shuffled"}
    assert planted["verbatim"]["recall"] == planted["wrapped"]["recall"] == 1.0
    assert planted["verbatim"]["low"] < 1.0
    assert planted["locale"] == {**planted["locale"], "n": 1, "found": 1}
    assert planted["shuffled"] == {"items": 7, "turns": 60, "hits": 0}


def test_shards_are_the_same_with_one_worker_two_and_in_parts(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", [line["record"] for line in PLANTED])
    how = DecontaminateOptions((write(tmp_path / "bench.jsonl", ITEMS),), ("question",), reject="exchange")

    def folder(name: str, parts: tuple[tuple[int, int], ...] = ((0, 1),), **more: Any) -> list[bytes]:
        for part in parts:
            run = RunOptions([source], output=str(tmp_path / name), rows_per_shard=9, part=part, **more)
            run_decontaminate(how, run)
        return [path.read_bytes() for path in sorted((tmp_path / name).glob("part-*.arrow"))]

    one = folder("one", workers=1)
    assert len(one) == 5
    assert one == folder("two", workers=2) == folder("parts", ((0, 2), (1, 2)), workers=1)
