"""Mutated records: nothing that a reader lets in loses text in silence, and nothing stops it but a refusal."""

from __future__ import annotations

from typing import Any

import pytest

from sft_toolkit.errors import RecordError
from sft_toolkit.formats import RecordReader
from tests.sft_toolkit.formats.mutations import lengthened, problem, run


def test_no_mutated_record_loses_text_or_raises_anything_but_a_refusal() -> None:
    outcomes = run(4_000, seed=20)
    assert outcomes["read"] > 1_500 and len(outcomes) > 20


def test_the_check_finds_a_text_that_vanishes() -> None:
    record = {"question": lengthened("apple"), "answer": lengthened("pear")}
    assert problem(record, [], False) == ("read", "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sft_toolkit.conversation.Message.to_record", lambda message: {"role": message.role})
        assert problem(record, [], False)[1].startswith("lost [")


@pytest.mark.parametrize("record", [{"": "../x"}, {"": []}, {"": [{"": ""}]}, {"": {"": {"": "x"}}, "text": ""}])
def test_a_column_without_a_name_is_refused_at_once(record: dict[str, Any]) -> None:
    with pytest.raises(RecordError):
        RecordReader().read(record)
