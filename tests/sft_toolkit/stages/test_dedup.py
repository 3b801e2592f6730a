"""dedup: what is a duplicate, which one stays, and that neither order nor workers change it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.json_text import decode, encode
from sft_toolkit.running.options import RunOptions
from sft_toolkit.stages.choosing.dedup import DedupOptions, run_dedup
from sft_toolkit.stages.choosing.likeness import likeness
from sft_toolkit.stages.choosing.plain_words import tokens
from tests.conftest import CASES

LINES = [decode(line) for line in (CASES / "choosing" / "dedup.jsonl").read_text().splitlines()]
RECORDS = [line["record"] for line in LINES if "record" in line]
TRUTHS = [line["truth"] for line in LINES if "truth" in line]


def deduplicated(folder: Path, records: list[dict[str, Any]], **how: Any) -> tuple[list[Any], list[Any]]:
    folder.mkdir(exist_ok=True)
    source, kept, lost = (folder / f"{name}.jsonl" for name in ("in", "kept", "lost"))
    source.write_bytes(b"".join(encode(record) + b"\n" for record in records))
    run = RunOptions([str(source)], output=str(kept), quarantine_file=str(lost), workers=1, force=True)
    run_dedup(DedupOptions(**how), run)
    return [decode(line) for line in kept.read_bytes().splitlines()], [
        decode(line) for line in lost.read_bytes().splitlines()
    ]


def asking(name: str, prompt: str, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": prompt}, {"role": "assistant", "content": more.pop("answer", "ja")}]
    return {"id": name, "messages": messages, **more}


@pytest.mark.parametrize("column", ["prompt", "answer", "both"])
def test_the_small_set_gets_its_clusters(column: str, tmp_path: Path) -> None:
    by = {"both": "prompt+answer"}.get(column, column)
    kept, lost = deduplicated(tmp_path, RECORDS, by=by)
    expected = {tuple(truth["ids"]) for truth in TRUTHS if truth[column] == "dup"}
    found: dict[str, set[str]] = {}
    for record in [*kept, *(line["record"] for line in lost)]:
        if record["cluster"] is not None:
            found.setdefault(record["cluster"], set()).add(record["id"])
    assert {tuple(sorted(ids)) for ids in found.values()} == expected
    assert all(line["partner"] == [line["record"]["cluster"]] for line in lost)
    assert {record["cluster_size"] for record in kept} == {1, 2}


def test_contrast_keeps_the_shortest_and_the_longest_reasoning(tmp_path: Path) -> None:
    kept, lost = deduplicated(tmp_path, RECORDS, by="prompt", contrast=2.0)
    assert [record["id"] for record in kept if record["cluster"] == "k16"] == ["k16", "k17"]
    assert len(lost) == sum(truth["prompt"] == "dup" for truth in TRUTHS) - 1


@pytest.mark.parametrize(("keep", "chosen"), [("first", "k01"), ("best:quality", "k01"), ("longest", "k00")])
def test_the_rule_decides_which_record_stays(keep: str, chosen: str, tmp_path: Path) -> None:
    kept, _ = deduplicated(tmp_path, list(reversed(RECORDS[:2])), by="prompt", keep=keep)
    assert [record["id"] for record in kept] == [chosen]


def test_the_order_of_the_input_changes_no_cluster_and_no_choice(tmp_path: Path) -> None:
    shuffled = random.Random(1).sample(RECORDS, len(RECORDS))
    one, other = (
        deduplicated(tmp_path / str(index), records, by="prompt", keep="best:quality")[0]
        for index, records in enumerate((RECORDS, shuffled))
    )
    assert {(each["id"], each["cluster"]) for each in one} == {(each["id"], each["cluster"]) for each in other}


def test_a_chain_is_one_cluster(tmp_path: Path) -> None:
    words = [f"wort{chr(97 + n)}{chr(97 + n * 7 % 26)}" for n in range(26)]
    chain = [" ".join([*words[: 26 - n], *["neu" + chr(97 + k) for k in range(n)]]) for n in range(5)]
    kept, lost = deduplicated(tmp_path, [asking(f"c{n}", text) for n, text in enumerate(chain)], by="prompt")
    assert [record["id"] for record in kept] == ["c0"]
    assert [line["partner"] for line in lost] == [["c0"]] * 4
    assert likeness(" ".join(tokens(chain[0])), " ".join(tokens(chain[4]))) < 0.8


def test_texts_without_words_are_no_duplicates_and_numbers_and_operators_count(tmp_path: Path) -> None:
    prompts = ["", "…", "Was ist 3 + 5?", "Was ist 3 - 5?", "Was ist 3,5?", "Was ist 3.5?"]
    kept, _ = deduplicated(tmp_path, [asking(f"e{n}", text) for n, text in enumerate(prompts)], by="prompt")
    assert [record["id"] for record in kept] == ["e0", "e1", "e2", "e3", "e4"]


def test_numbers_can_be_ignored(tmp_path: Path) -> None:
    kept, _ = deduplicated(tmp_path, RECORDS, by="prompt", numbers="ignore")
    assert [record["id"] for record in kept if record["id"] in ("k20", "k21", "k22")] == ["k20"]


def test_a_large_cluster_stops_the_run_by_name_unless_it_is_forced(tmp_path: Path) -> None:
    records = [asking(f"b{n:02}", "Guten Tag, wie geht es Ihnen heute?") for n in range(21)]
    with pytest.raises(ToolkitError, match="cluster b00 holds 21 of 21"):
        deduplicated(tmp_path, records, by="prompt")
    kept, _ = deduplicated(tmp_path / "forced", records, by="prompt", allow_large=True)
    assert len(kept) == 1


def test_options_that_make_no_sense_are_usage_errors() -> None:
    for wrong in ({"threshold": 0.0}, {"keep": "last"}, {"by": "answer", "contrast": 2.0}):
        with pytest.raises(UsageError):
            DedupOptions(**wrong)


def test_shards_are_the_same_with_one_worker_two_and_in_parts(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(b"".join(encode(record) + b"\n" for record in RECORDS))

    def folder(name: str, parts: tuple[tuple[int, int], ...] = ((0, 1),), **more: Any) -> list[bytes]:
        for part in parts:
            run = RunOptions([str(source)], output=str(tmp_path / name), rows_per_shard=9, part=part, **more)
            run_dedup(DedupOptions("prompt"), run)
        return [path.read_bytes() for path in sorted((tmp_path / name).glob("part-*.arrow"))]

    one = folder("one", workers=1)
    assert len(one) == 5
    assert one == folder("two", workers=2) == folder("parts", ((0, 2), (1, 2)), workers=1)
