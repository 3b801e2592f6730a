"""The short way for records in the toolkit's own form gives what the long way gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sft_toolkit.formats import RecordReader
from sft_toolkit.formats.mapping import parse_mapping
from sft_toolkit.formats.plain import plain_conversation
from sft_toolkit.json_text import decode
from tests.conftest import ROOT
from tests.sft_toolkit.formats.schema_cases import cases, read_all

LONG_WAY = RecordReader(mapping=parse_mapping(["as-user=nobody who speaks anywhere"]))


def records() -> Iterator[Any]:
    for case in cases():
        if "records" in case["expect"]:
            yield from read_all(case["input"], [] if case["how"] == "auto" else case["how"])
    for name in ("agent_runs", "general_chat", "school_maths", "handwritten"):
        for line in (ROOT / "sample_data" / f"{name}.jsonl").read_bytes().splitlines()[:60]:
            yield decode(line)


def test_both_ways_give_the_same_conversation() -> None:
    short = 0
    for record in records():
        plain = plain_conversation(record)
        if plain is not None:
            [long] = LONG_WAY.read(record)
            assert plain == long
            short += 1
    assert short > 250


@pytest.mark.parametrize(
    "more",
    [{"system": "s"}, {"images": ["x"]}, {"Id": "x"}, {"functions": []}, {"provenance": "web"}, {"loss_mask": [1]}],
)
def test_a_column_that_means_something_takes_the_long_way(more: dict[str, Any]) -> None:
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    assert plain_conversation({"messages": messages}) is not None
    assert plain_conversation({"messages": messages, **more}) is None
