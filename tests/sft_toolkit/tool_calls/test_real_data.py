"""Judging real agent traces: tau-bench's airline agent, Glaive's function calls, ToolBench's unknown names."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.errors import RecordError
from sft_toolkit.formats import parse_record
from sft_toolkit.json_text import decode
from sft_toolkit.tool_calls.judge import BadTurn, Judge


def judged(records: list[dict[str, Any]], **rules: Any) -> tuple[list[tuple[str, BadTurn]], Counter[str]]:
    """(record id, verdict) for every bad turn, and the counts; records that cannot be read count as "unreadable"."""
    verdicts, notes = [], Counter[str]()
    for record in records:
        try:
            conversation = parse_record(record)
        except RecordError:
            notes["unreadable"] += 1
            continue
        judgement = Judge(**rules).judge(conversation)
        verdicts += [(conversation.id, verdict) for verdict in judgement.verdicts]
        notes += judgement.notes
    return verdicts, notes


@pytest.fixture(scope="module")
def airline(shared: Path) -> list[dict[str, Any]]:
    tools = decode((shared / "data/tau_bench/airline_tools.json").read_bytes())
    lines = (shared / "data/tau_bench/gpt-4o-airline.subset.jsonl").read_bytes().splitlines()
    return [{**decode(line), "tools": tools} for line in lines]


def test_exactly_the_annotated_repeats_of_the_airline_agent_are_bad(shared: Path, airline: Any) -> None:
    annotated = json.loads((shared / "data/tau_bench/gpt-4o-airline.annotations.json").read_text())
    repeats = annotated["exact_repeats_of_failed_call"]
    verdicts, notes = judged(airline)
    assert len(airline) == 58
    assert notes == {
        "tool_calls": 493,
        "masked_repeat_of_failed_call": 17,
        "masked_repeat_after_user_message": 10,
    }
    assert sorted((name, verdict.turn, verdict.fault.of) for name, verdict in verdicts) == sorted(
        (repeat["id"], repeat["turn"], repeat["first_failed_turn"]) for repeat in repeats
    )


def test_corrections_of_the_airline_agent_stay_trained(shared: Path, airline: Any) -> None:
    annotated = json.loads((shared / "data/tau_bench/gpt-4o-airline.annotations.json").read_text())
    corrected = {(pair["id"], pair["corrected_turn"]) for pair in annotated["failed_then_corrected_same_tool"]}
    assert len(corrected) == 28
    assert not corrected & {(name, verdict.turn) for name, verdict in judged(airline)[0]}


def test_a_user_round_forgives_the_repeats_that_the_user_asked_for(airline: Any) -> None:
    assert judged(airline, repeats="user-round")[1]["masked_repeat_of_failed_call"] == 7


def test_the_schema_violations_of_glaive_are_found(shared: Path) -> None:
    chinese, notes = judged(decode((shared / "data/glaive/glaive_toolcall_zh_demo.json").read_bytes()))
    assert notes == {"tool_calls": 216, "masked_invalid_arguments": 8, "unreadable": 2}
    assert Counter(verdict.fault.detail.partition(" is ")[0] for _, verdict in chinese) == {
        "calculate_area at /dimensions: radius": 2,
        "calculate_area at /dimensions: length": 2,
        "search_books: keywords": 2,
        'search_recipes at /cuisine: "意大利"': 2,
    }
    ((_, english),), _ = judged(decode((shared / "data/glaive/glaive_toolcall_en_demo.200-299.json").read_bytes()))
    assert english.fault.path == "/calories_per_item"


def test_the_unknown_names_of_toolbench_are_found(shared: Path) -> None:
    lines = (shared / "data/toolbench/evalset_unknown_tool_names.jsonl").read_bytes().splitlines()
    records, unknown = [], set()
    for index, record in enumerate(map(decode, lines)):
        calls = [{"role": "assistant", "tool_calls": [{"function": {"name": name}}]} for name in record["called"]]
        tools = [{"name": name} for name in record["available_tools"]]
        records.append({"id": str(index), "messages": calls, "tools": tools})
        unknown |= {(str(index), turn) for turn, name in enumerate(record["called"]) if name in record["unknown"]}
    verdicts, notes = judged(records)
    assert notes == {"tool_calls": 219, "masked_unknown_tool": 67}
    assert {(name, verdict.turn) for name, verdict in verdicts} == unknown


def test_the_one_undeclared_call_of_toolbenchs_chains_gets_its_full_name_suggested(shared: Path) -> None:
    lines = (shared / "data/toolbench/data_example.longest_chain.jsonl").read_bytes().splitlines()
    chains = [
        {"id": chain["id"], "messages": chain["train_messages"], "tools": chain["functions"]}
        for chain in map(decode, lines)
    ]
    ((_, verdict),), notes = judged(chains)
    assert notes["tool_calls"] == 50
    assert verdict.fault.detail == "dota_2_steam_web is not declared; did you mean match_history_for_dota_2_steam_web?"
