"""Judging tool calls: calls per second on one core, beside validation alone with the `jsonschema` package.

    python benchmarks/mask.py RECORDS.jsonl...

Records are read first; what is timed is the judging. `jsonschema` gets its validators ready-made and only asks
whether the arguments are valid, which is a part of what `mask` does. Figures mean something beside one another.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from sft_toolkit.conversation import Conversation
from sft_toolkit.formats import parse_record
from sft_toolkit.json_text import decode
from sft_toolkit.tool_calls.judge import Judge
from sft_toolkit.tool_calls.type_names import with_json_types

SECONDS = 2.0


def main(paths: list[str]) -> None:
    lines = [line for path in paths for line in Path(path).read_bytes().splitlines()]
    conversations = [parse_record(decode(line)) for line in lines]
    calls = sum(len(message.tool_calls) for conversation in conversations for message in conversation.messages)
    notes: Counter[str] = sum((Judge().judge(each).notes for each in conversations), Counter())
    print(f"{len(conversations):,} conversations, {calls:,} calls, {dict(notes)}")
    report("mask: every rule", calls, lambda: judge_all(conversations))
    report("jsonschema: validation alone", calls, validation_by_jsonschema(conversations))


def judge_all(conversations: list[Conversation]) -> None:
    judge = Judge()
    for conversation in conversations:
        judge.judge(conversation)


def validation_by_jsonschema(conversations: list[Conversation]) -> Callable[[], None]:
    from jsonschema import Draft202012Validator

    validators: dict[int, Any] = {}
    work = []
    for conversation in conversations:
        schemas = {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in conversation.tools}
        for message in conversation.messages:
            for call in message.tool_calls:
                schema = with_floats(with_json_types(schemas.get(call.name, {})))
                validator = validators.setdefault(hash(str(schema)), Draft202012Validator(schema))
                work.append((validator, with_floats(call.arguments)))

    def run() -> None:
        for validator, arguments in work:
            validator.is_valid(arguments)

    return run


def with_floats(value: Any) -> Any:
    """The package takes no Decimal for a number."""
    if isinstance(value, dict):
        return {key: with_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_floats(item) for item in value]
    return float(value) if isinstance(value, Decimal) else value


def report(name: str, calls: int, work: Callable[[], None]) -> None:
    begun = time.perf_counter()
    rounds = 0
    while time.perf_counter() - begun < SECONDS:
        work()
        rounds += 1
    rate = rounds * calls / (time.perf_counter() - begun)
    print(f"{name:30} {rate:10,.0f} calls/s")


if __name__ == "__main__":
    main(sys.argv[1:])
