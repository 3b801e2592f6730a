"""Shortcut rules of `mask`: what the packaged ones find and leave, and what each action does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import UsageError
from sft_toolkit.formats import parse_record
from sft_toolkit.stage import Outcome
from sft_toolkit.stages.mask import MaskStage
from sft_toolkit.stages.shortcuts import PACKAGED, ShortcutRule, read_rules


def masked(name: str, arguments: dict[str, Any], result: str, rules: Any) -> tuple[list[Conversation], Outcome]:
    call = {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}
    messages = [
        {"role": "user", "content": "Behebe den Fehler."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": result},
    ]
    record = {"id": "r", "messages": messages, "tools": [{"name": name, "parameters": {"type": "object"}}]}
    outcome = Outcome(quarantine=False)
    stage = MaskStage(shortcuts=rules, allow_extra_arguments=True)
    return list(stage.process([parse_record(record)], outcome)), outcome


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("curl -L https://github.com/a/b/pull/12.patch | git apply", "download_of_a_fix"),
        ("gh pr diff 12", "download_of_a_fix"),
        ("git log --all --oneline", "history_of_the_future"),
        ("git show 3f2a9c1", "history_of_the_future"),
        ("git diff HEAD origin/main", "history_of_the_future"),
        ("git fetch upstream", "fetch_of_upstream"),
        ("cat tests/expected_output.txt", "expected_output_of_tests"),
        ("head -5 data/solutions/17.py", "expected_output_of_tests"),
        ("git log --oneline -5", None),
        ("git show HEAD", None),
        ("git status && git diff", None),
        ("curl -s localhost:8000/health", None),
        ("cat src/main.py", None),
        ("pytest -x tests/test_main.py", None),
        ("grep -rn 'def solve' src", None),
    ],
)
def test_the_packaged_rules_note_what_fetches_an_answer_and_leave_usual_work(command: str, rule: str | None) -> None:
    ((conversation,), outcome) = masked("bash", {"command": command}, "ok", read_rules(PACKAGED))
    message = conversation.messages[1]
    assert message.extra.get("shortcut") == (None if rule is None else [rule])
    assert message.weight is None
    assert (f"shortcut: {rule}" in outcome.counters.notes) == (rule is not None)


def test_a_web_tool_that_fetches_a_pull_request_is_noted() -> None:
    rules = read_rules(PACKAGED)
    ((conversation,), _) = masked("web_fetch", {"url": "https://github.com/a/b/pull/12/files"}, "diff", rules)
    assert conversation.messages[1].extra["shortcut"] == ["fetch_of_a_fix_by_a_web_tool"]


def test_a_rule_masks_the_turn_or_rejects_the_record_and_may_look_at_the_result() -> None:
    rule = {"name": "gold", "result": "GOLD PATCH"}
    ((conversation,), _) = masked("run", {"x": 1}, "the GOLD PATCH", (ShortcutRule(**rule, action="mask"),))
    assert (conversation.messages[1].weight, conversation.messages[1].mask_detail) == (0, "gold")
    kept, outcome = masked("run", {"x": 1}, "the GOLD PATCH", (ShortcutRule(**rule, action="reject"),))
    assert kept == []
    assert [(each.reason, each.detail, each.partner) for each in outcome.rejections] == [("shortcut", "gold", ())]
    assert len(masked("run", {"x": 1}, "nothing", (ShortcutRule(**rule, action="reject"),))[0]) == 1


@pytest.mark.parametrize(
    "text",
    ["", "[[rules]]\n", '[[rules]]\ntool = "("\n', '[[rules]]\ntol = "x"\n', '[[rules]]\ntool="x"\naction="drop"\n'],
)
def test_a_file_without_sound_rules_is_a_usage_error(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(UsageError):
        read_rules(str(path))
