"""Records in the shapes of public data sets: each case is read, or refused by name, as its expectation says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sft_toolkit.formats.schema_cases import checks, problem

CHECKS = list(checks())


@pytest.mark.parametrize(
    ("case", "lines", "expect"), [check[1:] for check in CHECKS], ids=[check[0] for check in CHECKS]
)
def test_a_public_schema_is_read_or_refused_as_it_should_be(
    case: dict[str, Any], lines: list[str], expect: dict[str, Any]
) -> None:
    assert problem(case, lines, expect) is None
