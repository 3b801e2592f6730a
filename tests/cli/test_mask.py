"""`kolibri-sft mask`, as a process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.conftest import RunCli

BAKERY = {
    "id": "bakery",
    "messages": [
        {"role": "user", "content": "Bitte 16,20 Euro buchen."},
        {"role": "assistant", "tool_calls": [{"function": {"name": "buche", "arguments": '{"betrag": "16.20"}'}}]},
        {"role": "tool", "content": "Fehler: betrag muss eine Zahl sein"},
        {"role": "assistant", "tool_calls": [{"function": {"name": "buche", "arguments": '{"betrag": 16.20}'}}]},
        {"role": "tool", "content": "Fehler: Kasse zu"},
        {"role": "assistant", "tool_calls": [{"function": {"name": "buche", "arguments": '{"betrag": 16.2}'}}]},
        {"role": "tool", "content": "Fehler: Kasse zu"},
        {"role": "assistant", "content": "Die Kasse ist zu."},
    ],
    "tools": [{"name": "buche", "parameters": {"type": "object", "properties": {"betrag": {"type": "number"}}}}],
}
LINE = json.dumps(BAKERY).encode() + b"\n"


def reasons(output: bytes) -> dict[int, str]:
    messages: list[dict[str, Any]] = json.loads(output)["messages"]
    return {turn: message["mask_reason"] for turn, message in enumerate(messages) if message.get("weight") == 0}


def test_it_masks_from_stdin_to_stdout_and_keeps_every_digit(run_cli: RunCli) -> None:
    done = run_cli("mask", stdin=LINE)
    assert done.returncode == 0
    assert reasons(done.stdout) == {1: "invalid_arguments"}
    assert b'{"betrag":16.20}' in done.stdout


def test_failure_patterns_make_the_repeat_visible_and_the_summary_counts_it(run_cli: RunCli) -> None:
    done = run_cli("mask", "--failure-pattern", "Fehler", "--json", stdin=LINE)
    assert reasons(done.stdout) == {1: "invalid_arguments", 5: "repeat_of_failed_call"}
    notes = json.loads(done.stderr)["notes"]
    assert notes == {"tool_calls": 3, "masked_invalid_arguments": 1, "masked_repeat_of_failed_call": 1}


def test_the_environments_own_words_can_be_configured(run_cli: RunCli) -> None:
    done = run_cli("mask", "--unknown-tool-pattern", "Fehler: Kasse", stdin=LINE)
    assert reasons(done.stdout) == {1: "invalid_arguments", 3: "unknown_tool", 5: "unknown_tool"}


def test_a_pattern_that_is_no_regular_expression_is_a_usage_error(run_cli: RunCli) -> None:
    done = run_cli("mask", "--failure-pattern", "(", stdin=LINE)
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    assert b"--failure-pattern" in done.stderr


def test_an_unknown_rule_for_repeats_is_a_usage_error_that_lists_the_rules(run_cli: RunCli) -> None:
    done = run_cli("mask", "--repeats", "never", stdin=LINE)
    assert done.returncode == 2
    assert b"'default', 'strict', 'user-round'" in done.stderr


def test_tau_bench_from_file_to_shards_masks_the_17_repeats(run_cli: RunCli, shared: Path, tmp_path: Path) -> None:
    tools = json.loads((shared / "data/tau_bench/airline_tools.json").read_text())
    lines = (shared / "data/tau_bench/gpt-4o-airline.subset.jsonl").read_text(encoding="utf-8").splitlines()
    source = tmp_path / "airline.jsonl"
    source.write_text("".join(json.dumps({**json.loads(line), "tools": tools}) + "\n" for line in lines))
    done = run_cli("mask", source, "-o", tmp_path / "masked", "--json")
    assert done.returncode == 0
    notes = json.loads(done.stdout)["notes"]
    assert notes["masked_repeat_of_failed_call"] == 17
    assert "masked_unknown_tool" not in notes
    assert (tmp_path / "masked" / "manifest.json").exists()
